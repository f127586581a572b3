//! TLS of both servers, with certificates of clients and without.

use std::{fs, sync::Arc, time::Duration};

use discovery::{DiscoveryMetrics, Service, Tls, serve_http};
use discovery_proto::{self as proto, discovery_client::DiscoveryClient};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use crate::{
    certificates::{Authority, Pair},
    grpc::{Server, id},
    world::World,
};

async fn service(authority: &Authority, has_clients: bool) -> (World, Service, Arc<Tls>) {
    let world = World::start(async |_| ()).await;
    world.answer(|_| true).await;
    let tls = Tls::load(authority.files(has_clients)).unwrap();
    let service = Service::new(Arc::clone(world.catalog()), DiscoveryMetrics::default());
    (world, service.with_tls(Some(Arc::clone(&tls))), tls)
}

/// Resolves the set by gRPC, with the certificate of a client.
async fn resolve(
    server: &Server,
    authority: &Authority,
    client: Option<&Pair>,
) -> Result<(), String> {
    let mut tls = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(authority.pem()))
        .domain_name("localhost");
    if let Some(Pair { certificate, key }) = client {
        tls = tls.identity(Identity::from_pem(certificate, key));
    }
    let endpoint = Endpoint::from_shared(server.uri.replace("http:", "https:")).unwrap();
    let channel = endpoint.tls_config(tls).unwrap().connect_lazy();
    let request = proto::ResolveRequest {
        set: Some(id("web")),
        known_version: 0,
    };
    let resolved = DiscoveryClient::new(channel).resolve(request).await;
    resolved.map(drop).map_err(|error| error.to_string())
}

#[tokio::test]
async fn grpc_by_tls_needs_a_certificate_of_the_client_if_there_is_an_authority_of_clients() {
    let authority = Authority::new();
    for has_clients in [false, true] {
        let (_world, service, _) = service(&authority, has_clients).await;
        let server = Server::lazy(service).await;
        let known = authority.client("checkout", "shop");
        resolve(&server, &authority, Some(&known)).await.unwrap();
        assert_eq!(
            resolve(&server, &authority, None).await.is_err(),
            has_clients
        );
        let stranger = Authority::new().client("checkout", "shop");
        let foreign = resolve(&server, &authority, Some(&stranger)).await;
        assert_eq!(foreign.is_err(), has_clients);
        resolve(&server, &Authority::new(), Some(&known))
            .await
            .expect_err("a server of another authority");
        let plain = Endpoint::from_shared(server.uri.clone())
            .unwrap()
            .connect_lazy();
        let request = proto::ResolveRequest::default();
        DiscoveryClient::new(plain)
            .resolve(request)
            .await
            .expect_err("plain text");
    }
}

#[tokio::test]
async fn a_changed_certificate_is_used_by_new_connections() {
    let authority = Authority::new();
    let (_world, service, _) = service(&authority, false).await;
    let server = Server::lazy(service).await;
    resolve(&server, &authority, None).await.unwrap();
    // Of another authority, in the same files.
    let other = Authority::new();
    let files = authority.files(false);
    let Pair { certificate, key } = other.server();
    fs::write(files.certificate, certificate).unwrap();
    fs::write(files.key, key).unwrap();
    let changed = async {
        while resolve(&server, &other, None).await.is_err() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    timeout(Duration::from_secs(60), changed)
        .await
        .expect("it is read again");
    resolve(&server, &authority, None).await.unwrap_err();
}

#[tokio::test]
async fn http_by_tls() {
    let authority = Authority::new();
    let (_world, service, _) = service(&authority, true).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let cancel = CancellationToken::new();
    let serving = tokio::spawn(serve_http(listener, service, cancel.clone()));
    let Pair { certificate, key } = authority.client("checkout", "shop");
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(
            vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
        );
    let connector = TlsConnector::from(Arc::new(client.unwrap()));
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = connector.connect(name, stream).await.unwrap();
    let request = b"GET /v1/endpoints/default/web HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    cancel.cancel();
    timeout(Duration::from_secs(60), serving)
        .await
        .expect("it ends")
        .unwrap();
}
