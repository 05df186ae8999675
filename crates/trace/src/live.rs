//! The live objects, with a value for each. Memory is that of the live objects, not of all there
//! have been; if the machine has too little, that is a fault.

use super::fault::{Fault, foreign, impossible};
use super::layout::{MOST_LIVE, MOST_THREADS};
use super::{Event, Token, room};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// The live objects.
pub struct Live<T> {
    objects: HashMap<u64, T, RandomState>,
    /// Allocations of each thread so far.
    allocations: Vec<u64>,
    most: u64,
}

impl<T> Default for Live<T> {
    fn default() -> Live<T> {
        Live {
            objects: HashMap::default(),
            allocations: Vec::new(),
            most: MOST_LIVE,
        }
    }
}

impl<T> Live<T> {
    /// Begins an object; returns its token.
    #[inline]
    pub fn begin(&mut self, thread: u32, about: T) -> Result<Token, Fault> {
        if self.len() >= self.most {
            return Err(impossible(format!(
                "more than {} objects live at once",
                self.most
            )));
        }
        if self.objects.len() == self.objects.capacity() {
            self.grow()?;
        }
        let place = thread as usize;
        if place >= self.allocations.len() {
            if thread >= MOST_THREADS {
                return Err(impossible(format!(
                    "thread {thread}: a trace has {MOST_THREADS} threads at most"
                )));
            }
            self.allocations.resize(place + 1, 0);
        }
        let token = Token {
            thread,
            index: self.allocations[place],
        };
        self.allocations[place] += 1;
        self.objects.insert(token.packed(), about);
        Ok(token)
    }

    /// Grows the table.
    #[cold]
    fn grow(&mut self) -> Result<(), Fault> {
        // Twice as many, each with a byte of the table's own, and one of eight places free.
        let bytes = 2 * self.objects.capacity() * (size_of::<(u64, T)>() + 1) * 8 / 7;
        let given = room::refusal(bytes as u64).map_or_else(
            || {
                self.objects
                    .try_reserve(1)
                    .map_err(|_| "the system gives no more memory".to_owned())
            },
            Err,
        );
        given.map_err(|why| {
            let live = self.objects.len();
            foreign(format!("{live} objects live at once, and more begin: {why}; take a machine with more memory"))
        })
    }

    /// Ends an object; returns its value.
    #[inline]
    pub fn end(&mut self, token: Token) -> Result<T, Fault> {
        self.objects
            .remove(&token.packed())
            .ok_or_else(|| self.dead(token))
    }

    /// The value of a live object.
    pub fn get(&self, token: Token) -> Option<&T> {
        self.objects.get(&token.packed())
    }

    /// The same, mutable.
    pub fn get_mut(&mut self, token: Token) -> Result<&mut T, Fault> {
        // Looked up twice only if that fails.
        if !self.objects.contains_key(&token.packed()) {
            return Err(self.dead(token));
        }
        Ok(self
            .objects
            .get_mut(&token.packed())
            .expect("it was just there"))
    }

    #[cold]
    fn dead(&self, token: Token) -> Fault {
        let Token { thread, index } = token;
        let known = self
            .allocations
            .get(thread as usize)
            .is_some_and(|allocations| index < *allocations);
        impossible(match known {
            true => format!("object {index} of thread {thread} is not alive any more"),
            false => format!("object {index} of thread {thread} is not allocated yet"),
        })
    }

    /// How many objects are live.
    pub fn len(&self) -> u64 {
        self.objects.len() as u64
    }

    /// Whether none is live.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Allocations of a thread so far.
    pub fn allocations(&self, thread: u32) -> u64 {
        self.allocations.get(thread as usize).copied().unwrap_or(0)
    }

    /// Threads that have allocated something have numbers below this.
    pub fn threads(&self) -> u32 {
        self.allocations.len() as u32
    }

    /// All live objects, in no order.
    pub fn into_objects(self) -> impl Iterator<Item = (Token, T)> {
        self.objects
            .into_iter()
            .map(|(packed, about)| (Token::of_packed(packed), about))
    }

    /// Applies an event: `about` makes the value of a new object, given the one it replaces.
    /// Returns the object that ended.
    #[inline]
    pub fn follow(
        &mut self,
        thread: u32,
        event: &Event,
        about: impl FnOnce(u64, Option<&T>) -> T,
    ) -> Result<(Option<Token>, Option<T>), Fault> {
        let ended = event.ends().map(|token| self.end(token)).transpose()?;
        if ended.is_none()
            && let Some(token) = event.names()
        {
            self.get_mut(token)?;
        }
        let begun = event
            .begins()
            .map(|size| self.begin(thread, about(size, ended.as_ref())))
            .transpose()?;
        Ok((begun, ended))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_live_from_their_beginning_to_their_end_and_end_once() {
        let mut live = Live::default();
        let (first, second) = (live.begin(3, 'a').unwrap(), live.begin(3, 'b').unwrap());
        assert_eq!(
            (first, second),
            (
                Token {
                    thread: 3,
                    index: 0
                },
                Token {
                    thread: 3,
                    index: 1
                }
            )
        );
        assert_eq!((live.end(first).unwrap(), live.len()), ('a', 1));
        assert_eq!(
            live.end(first).unwrap_err().to_string(),
            "object 0 of thread 3 is not alive any more"
        );
        assert_eq!(
            live.end(Token {
                thread: 4,
                index: 0
            })
            .unwrap_err()
            .to_string(),
            "object 0 of thread 4 is not allocated yet"
        );
        assert_eq!(live.into_objects().collect::<Vec<_>>(), [(second, 'b')]);
    }

    #[test]
    fn there_is_a_limit_of_objects_and_of_threads() {
        let mut live = Live {
            most: 2,
            ..Live::default()
        };
        assert!(live.begin(0, ()).and(live.begin(0, ())).is_ok());
        assert_eq!(
            live.begin(0, ()).unwrap_err().to_string(),
            "more than 2 objects live at once"
        );
        assert!(Live::default().begin(MOST_THREADS, ()).is_err());
    }
}
