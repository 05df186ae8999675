//! Lists indexed by a number that counts from 0, such as a thread's number.

/// Returns the element at a place of a list, which grows as far as needed.
#[inline]
pub fn grown<T: Default>(list: &mut Vec<T>, place: usize) -> &mut T {
    if place >= list.len() {
        list.resize_with(place + 1, T::default);
    }
    &mut list[place]
}
