//! The live objects, with a value for each. Takes memory for the live objects only, not for all
//! that ever lived; too little memory is a fault.

use super::fault::{Result, foreign, impossible};
use super::grown::grown;
use super::layout::{MOST_LIVE, checked_thread};
use super::{Event, Token, room};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// The number of allocations of each thread so far.
#[derive(Default)]
pub struct Allocations(pub Vec<u64>);

impl Allocations {
    /// Names the next object of a thread.
    #[inline]
    pub fn next(&mut self, thread: u32) -> Token {
        let count = grown(&mut self.0, thread as usize);
        *count += 1;
        Token {
            thread,
            index: *count - 1,
        }
    }

    /// Returns the number of allocations of a thread.
    pub fn of(&self, thread: u32) -> u64 {
        self.0.get(thread as usize).copied().unwrap_or(0)
    }

    /// Returns a fault with the reason why an object is not alive.
    #[cold]
    fn dead<T>(&self, token: Token) -> Result<T> {
        let Token { thread, index } = token;
        let why = if index < self.of(thread) {
            "not alive any more"
        } else {
            "not allocated yet"
        };
        impossible(format!("object {index} of thread {thread} is {why}"))
    }
}

/// The live objects.
pub struct Live<T> {
    objects: HashMap<u64, T, RandomState>,
    pub allocations: Allocations,
    most: u64,
}

impl<T> Default for Live<T> {
    fn default() -> Live<T> {
        Live {
            objects: HashMap::default(),
            allocations: Allocations::default(),
            most: MOST_LIVE,
        }
    }
}

impl<T> Live<T> {
    /// Begins an object; returns its token.
    #[inline]
    pub fn begin(&mut self, thread: u32, about: T) -> Result<Token> {
        if self.len() >= self.most {
            return impossible(format!("more than {} objects live at once", self.most));
        }
        if self.objects.len() == self.objects.capacity() {
            self.grow()?;
        }
        let token = self.allocations.next(checked_thread(thread.into())?);
        self.objects.insert(token.packed(), about);
        Ok(token)
    }

    /// Grows the table, or returns why it cannot grow.
    #[cold]
    fn grow(&mut self) -> Result<()> {
        // Twice as many entries, each with one byte of the table's own; one place in eight stays
        // free.
        let bytes = 2 * self.objects.capacity() * (size_of::<(u64, T)>() + 1) * 8 / 7;
        let why = match room::refusal(bytes as u64) {
            Some(why) => why,
            None if self.objects.try_reserve(1).is_ok() => return Ok(()),
            None => "the system gives no more memory".into(),
        };
        let live = self.objects.len();
        foreign(format!(
            "{live} objects live at once, and more begin: {why}; take a machine with more memory"
        ))
    }

    /// Ends an object; returns its value.
    #[inline]
    pub fn end(&mut self, token: Token) -> Result<T> {
        self.objects
            .remove(&token.packed())
            .map_or_else(|| self.allocations.dead(token), Ok)
    }

    /// Returns the value of a live object.
    pub fn get(&self, token: Token) -> Option<&T> {
        self.objects.get(&token.packed())
    }

    /// Returns the value of a live object for changes; a fault if the object is not alive.
    pub fn get_mut(&mut self, token: Token) -> Result<&mut T> {
        self.objects
            .get_mut(&token.packed())
            .map_or_else(|| self.allocations.dead(token), Ok)
    }

    /// Returns how many objects are live.
    pub fn len(&self) -> u64 {
        self.objects.len() as u64
    }

    /// Returns all live objects, in no particular order.
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
    ) -> Result<Option<T>> {
        let ended = event.ends().map(|token| self.end(token)).transpose()?;
        if ended.is_none()
            && let Some(token) = event.names()
        {
            self.get_mut(token)?;
        }
        if let Some(size) = event.begins() {
            self.begin(thread, about(size, ended.as_ref()))?;
        }
        Ok(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::super::MOST_THREADS;
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
