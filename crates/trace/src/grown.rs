//! Lists by a number that counts from 0, such as a thread's.

/// The element at a place of a list, which becomes as long as that takes.
#[inline]
pub fn grown<T: Default>(list: &mut Vec<T>, place: usize) -> &mut T {
    if place >= list.len() {
        list.resize_with(place + 1, T::default);
    }
    &mut list[place]
}
