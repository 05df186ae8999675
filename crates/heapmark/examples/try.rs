//! t
use heapmark::{build, catalog::allocators};
fn main() {
    let all = allocators::load().unwrap_or_else(|e| panic!("{e}"));
    let names: Vec<String> = std::env::args().skip(1).collect();
    let sel: Vec<_> = all.iter().filter(|a| names.is_empty() || names.contains(&a.name)).collect();
    let t = std::time::Instant::now();
    for b in build::build(&sel, &all, 2, &indicatif::MultiProgress::new()) {
        match &b.result {
            Ok(l) => println!(
                "{} ok {:.1}s cached={} {:?} {} {}",
                b.name,
                b.seconds,
                b.cached,
                l.files,
                l.origin,
                l.exports.len()
            ),
            Err(e) => println!("{} FAILED {e:#}", b.name),
        }
    }
    println!("total {:?}", t.elapsed());
    let t = std::time::Instant::now();
    for a in &all {
        let s = build::state(a, &all);
        if names.is_empty() {
            println!(
                "{}: {}",
                a.name,
                match s {
                    build::State::Ready(l) => format!("ready {} {}", l.origin, l.source_version),
                    o => format!("{o:?}"),
                }
            );
        }
    }
    println!("state {:?}", t.elapsed());
}
