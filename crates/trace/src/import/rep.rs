//! The `.rep` files of malloclab (CS:APP): some numbers, then `a ID BYTES`, `r ID BYTES` and `f ID`.

use super::*;

pub const NAME: &str = "malloclab .rep";

/// Returns whether a file may be of this format: it begins with a number, alone on its line.
pub fn is(start: &[u8]) -> bool {
    let line = first_line(start);
    !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit())
}

#[derive(Default)]
pub struct Rep {
    has_begun: bool,
}

impl Format for Rep {
    fn line(&mut self, line: &str, to: &mut Import) -> Result<()> {
        let words: Vec<&str> = line.split_whitespace().collect();
        // IDs count from 0, but no object is at address 0.
        let at = |id: &str| decimal(id).map(|id| id.saturating_add(1));
        let is_begun = std::mem::replace(&mut self.has_begun, true);
        match words[..] {
            [] => {
                self.has_begun = is_begun;
                Ok(())
            }
            ["a", id, size] => to.begin(0, at(id)?, moved(None, decimal(size)?)),
            ["r", id, size] => {
                let (at, size) = (at(id)?, decimal(size)?);
                to.realloc(0, at, at, size)
            }
            ["f", id] => to.free(0, at(id)?),
            // The lines at the head: the size of the heap, how many objects and lines, and the weight.
            [number] if !is_begun => {
                self.has_begun = false;
                decimal(number).map(drop)
            }
            _ => damaged("neither `a ID BYTES`, `r ID BYTES` nor `f ID`"),
        }
    }
}
