//! `Resolve`: the endpoints of a set are encoded once for each of their versions, as they are asked for far more often than they
//! change.

use axum::{Router, body::Body, routing::post_service};
use bytes::{BufMut, Bytes};
use discovery_proto as proto;
use http::Request as HttpRequest;
use prost::Message;
use quick_cache::{Weighter, sync::Cache};
use tonic::{
    Request, Response, Status,
    codec::{Codec, EncodeBuf, Encoder},
    server::Grpc,
};
use tonic_prost::{ProstCodec, ProstDecoder};

use super::messages;
use crate::{set::SetKey, snapshot::EndpointSnapshot};

/// The path of the method, before that of the whole service.
const PATH: &str = "/fedrs.discovery.v1alpha1.Discovery/Resolve";
/// The most bytes of endpoints that are kept encoded, of the sets that were asked for last.
const MOST_BYTES: u64 = 32 << 20;
/// About how many bytes an entry of the cache takes beside them.
const ENTRY: usize = 128;
/// The bytes of the endpoints of a usual set.
const USUAL_BYTES: usize = 4 << 10;

/// The method `Resolve` of the service, whose requests have so many bytes at most.
pub(super) fn router<F, A>(max_request: usize, answer: F) -> Router
where
    F: Fn(Request<proto::ResolveRequest>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Result<Response<Encoded>, Status>> + Send + 'static,
{
    let method = tower::service_fn(move |request: HttpRequest<Body>| {
        let answer = tower::service_fn(answer.clone());
        async move {
            let mut grpc = Grpc::new(ResolveCodec);
            grpc = grpc.apply_max_message_size_config(Some(max_request), None);
            Ok(grpc.unary(answer, request).await)
        }
    });
    Router::new().route_service(PATH, post_service(method))
}

/// A `ResolveResponse` as it is sent, in two parts: in that encoding, they are one message.
#[derive(Debug)]
pub(super) struct Encoded {
    endpoints: Bytes,
    /// All else.
    rest: proto::ResolveResponse,
}

impl Encoded {
    pub(super) fn new(endpoints: Bytes, rest: proto::ResolveResponse) -> Self {
        Self { endpoints, rest }
    }

    fn put(&self, buffer: &mut impl BufMut) {
        buffer.put_slice(&self.endpoints);
        self.rest.encode_raw(buffer);
    }

    /// The message.
    pub(super) fn decoded(&self) -> proto::ResolveResponse {
        let mut bytes = Vec::new();
        self.put(&mut bytes);
        proto::ResolveResponse::decode(&*bytes).expect("it has been encoded")
    }
}

/// The endpoints of the sets that were asked for last, encoded.
#[derive(Debug)]
pub(super) struct EncodedEndpoints(Cache<SetKey, (u64, Bytes), ByLength>);

impl Default for EncodedEndpoints {
    fn default() -> Self {
        let sets = usize::try_from(MOST_BYTES).map_or(usize::MAX, |most| most / USUAL_BYTES);
        Self(Cache::with_weighter(sets, MOST_BYTES, ByLength))
    }
}

impl EncodedEndpoints {
    /// The endpoints of the set, as they are in a `ResolveResponse`.
    pub(super) fn of(&self, key: &SetKey, snapshot: &EndpointSnapshot) -> Bytes {
        let known = self.0.get(key);
        if let Some((_, bytes)) = known.filter(|(version, _)| *version == snapshot.version) {
            return bytes;
        }
        let message = proto::ResolveResponse {
            endpoints: messages::endpoints(snapshot),
            ..proto::ResolveResponse::default()
        };
        let bytes = Bytes::from(message.encode_to_vec());
        self.0
            .insert(key.clone(), (snapshot.version, bytes.clone()));
        bytes
    }
}

#[derive(Clone, Debug)]
struct ByLength;

impl Weighter<SetKey, (u64, Bytes)> for ByLength {
    fn weight(&self, _: &SetKey, (_, bytes): &(u64, Bytes)) -> u64 {
        u64::try_from(bytes.len() + ENTRY).unwrap_or(u64::MAX)
    }
}

/// Reads requests, and writes answers that are encoded.
struct ResolveCodec;

impl Codec for ResolveCodec {
    type Encode = Encoded;
    type Decode = proto::ResolveRequest;
    type Encoder = Self;
    type Decoder = ProstDecoder<proto::ResolveRequest>;

    fn encoder(&mut self) -> Self::Encoder {
        Self
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstCodec::<proto::ResolveResponse, _>::default().decoder()
    }
}

impl Encoder for ResolveCodec {
    type Item = Encoded;
    type Error = Status;

    fn encode(&mut self, answer: Encoded, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        answer.put(buffer);
        Ok(())
    }
}
