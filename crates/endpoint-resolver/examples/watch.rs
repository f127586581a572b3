//! Prints the endpoints of a set as they change.
//!
//! ```console
//! $ cargo run -p endpoint-resolver --example watch -- http://127.0.0.1:9490 default/web
//! ```

use std::{env, error::Error};

use endpoint_resolver::{Resolved, Resolver};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let (Some(server), Some(set)) = (arguments.next(), arguments.next()) else {
        return Err("usage: watch http://HOST:PORT NAMESPACE/NAME".into());
    };
    let resolver = Resolver::builder().server(server);
    let resolver = resolver
        .directory(env::temp_dir().join("endpoint-resolver"))
        .build()?;
    let mut endpoints = resolver.endpoints(&set)?;
    loop {
        match endpoints.current() {
            Some(current) => print(&current),
            None => println!("nothing is known yet"),
        }
        if let Some(problem) = endpoints.problem() {
            println!("  problem: {problem}");
        }
        endpoints.changed().await?;
    }
}

fn print(current: &Resolved) {
    let (version, age) = (current.version, current.age().as_secs());
    println!(
        "version {version}, {} endpoints, {age} s old",
        current.endpoints.len()
    );
    for endpoint in current.endpoints.iter() {
        let state = if endpoint.ready { "ready" } else { "not ready" };
        let (cluster, pod) = (&endpoint.cluster, &endpoint.pod);
        println!("  {cluster}/{pod} {} {state}", endpoint.addresses.join(","));
    }
}
