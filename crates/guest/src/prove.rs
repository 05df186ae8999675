//! Finds which library serves the malloc family in this process: the object that owns each
//! function, by path, device, inode and build-id. The host compares it with the requested file.

use crate::api;
use crate::objects::Objects;
use crate::report;
use core::fmt;
use core::mem::zeroed;

/// Writes one `object=INDEX DEVICE INODE BUILD-ID PATH` line per loaded object and one
/// `owner=FUNCTION INDEX` line per function that an object defines.
pub fn report() {
    let objects = Objects::loaded();
    for (index, object) in objects.all().iter().enumerate() {
        // SAFETY: fills a local; objects without a file (the vDSO) read as 0.
        let stat = unsafe {
            let mut stat: libc::stat = zeroed();
            if libc::stat(object.path.as_ptr(), &mut stat) == 0 {
                stat
            } else {
                zeroed()
            }
        };
        report::write(format_args!(
            "object={index} {} {} {} {}",
            stat.st_dev,
            stat.st_ino,
            Hex(object.build_id),
            object.path.to_str().unwrap_or("?")
        ));
    }
    for (name, function) in api::family(&objects) {
        if let Some(index) = objects.owner(function) {
            report::write(format_args!(
                "owner={} {index}",
                name.to_str().unwrap_or("?")
            ));
        }
    }
}

struct Hex(&'static [u8]);

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("-");
        }
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
