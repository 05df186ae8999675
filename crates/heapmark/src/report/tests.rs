//! Golden placeholder.
use super::*;
use crate::analyse::artificial::{Lab, crash, noise};

#[test]
fn show() {
    let mut lab = Lab::new(
        &["glibc", "rpmalloc", "hoard", "null"],
        &["larson", "xmalloc"],
        10,
    )
    .fill(|_, name, block| {
        noise(name, block)
            * match name {
                "null" => 2.0,
                "rpmalloc" => 12.0,
                _ => 20.0,
            }
    });
    lab.allocator("null").tier = "floor".into();
    lab.run.cases[0].oversubscribed = true;
    lab.run.cases[1].counts_purge = true;
    lab.allocator("rpmalloc").leaves = vec!["posix_memalign".into()];
    let lab = lab.fail("larson@2/b03/hoard", crash());
    let analysis = analyse(&lab.run, &lab.records);
    for width in [100, 80] {
        println!(
            "{}",
            terminal(
                &analysis,
                Screen {
                    width,
                    colour: width == 80
                }
            )
        );
    }
    for format in Format::ALL {
        let text = export(format, &lab.run, &lab.records);
        println!("{}", text.chars().take(3500).collect::<String>());
    }
}
