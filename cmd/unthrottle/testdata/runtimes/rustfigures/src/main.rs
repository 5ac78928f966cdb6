use std::io::Read;

fn main() {
    let tokio = tokio::runtime::Builder::new_multi_thread().build().expect("a runtime");
    println!("tokio_workers={} rayon_threads={}", tokio.metrics().num_workers(), rayon::current_num_threads());
    let _ = std::io::stdin().read(&mut [0]);
}
