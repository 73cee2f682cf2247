fn main() {
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path).unwrap();
        let a = vramlens::oom::explain(&bytes);
        if std::env::var_os("J").is_some() {
            println!("{}", serde_json::to_string_pretty(&a).unwrap());
        } else if std::env::var_os("S").is_some() {
            println!(
                "{path}: {} gpu={} {:?} {:?} fixes={:?} req={:?} dev={:?} inc={} n={} sig={:?}",
                a.software,
                a.is_gpu_oom,
                a.diagnosis,
                a.confidence,
                a.fixes,
                a.requested_bytes,
                a.device,
                a.incomplete,
                a.occurrences,
                a.decisive.map(|d| d.signature)
            );
        } else {
            println!("=== {path}\n{}", vramlens::oom::report(&a));
        }
    }
}
