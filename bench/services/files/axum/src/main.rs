// A web service that answers hellos at once and checks passwords on Tokio's blocking threads.
use axum::{routing::get, Router};
use sha2::{Digest, Sha256};

fn check() -> String {
    let mut hash = Sha256::digest(b"correct horse battery staple");
    for _ in 0..150_000 {
        hash = Sha256::digest(hash);
    }
    format!("{:02x}\n", hash[0])
}

#[tokio::main]
async fn main() {
    let app = Router::new()
        .route("/hello", get(|| async { "hello\n" }))
        .route("/login", get(|| async { tokio::task::spawn_blocking(check).await.unwrap() }));
    let addr = std::env::args().nth(1).expect("an address");
    let listener = tokio::net::TcpListener::bind(addr).await.unwrap();
    axum::serve(listener, app).await.unwrap();
}
