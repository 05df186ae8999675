//! Collections that are empty in most records of a large run.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

/// A collection that is as small as a pointer while it is empty: the records of a million processes are held at once.
#[derive(Clone, Debug)]
pub struct Thin<T>(Option<Box<T>>);

/// A type that can be thin.
pub trait Collection: Default + 'static {
    /// The empty one.
    const EMPTY: &'static Self;

    /// Returns whether it is empty.
    fn is_empty(&self) -> bool;
}

impl<T: 'static> Collection for Vec<T> {
    const EMPTY: &'static Vec<T> = &Vec::new();

    fn is_empty(&self) -> bool {
        self.is_empty()
    }
}

impl<K: 'static, V: 'static> Collection for BTreeMap<K, V> {
    const EMPTY: &'static BTreeMap<K, V> = &BTreeMap::new();

    fn is_empty(&self) -> bool {
        self.is_empty()
    }
}

impl<T: Collection> Thin<T> {
    /// Returns whether the collection is empty.
    pub fn is_empty(&self) -> bool {
        Collection::is_empty(&**self)
    }
}

impl<T> Default for Thin<T> {
    fn default() -> Thin<T> {
        Thin(None)
    }
}

impl<T: Collection> From<T> for Thin<T> {
    fn from(collection: T) -> Thin<T> {
        Thin((!collection.is_empty()).then(|| Box::new(collection)))
    }
}

impl<A, T: Collection + FromIterator<A>> FromIterator<A> for Thin<T> {
    fn from_iter<I: IntoIterator<Item = A>>(items: I) -> Thin<T> {
        T::from_iter(items).into()
    }
}

impl<T: Collection> Deref for Thin<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::EMPTY)
    }
}

impl<T: Collection> DerefMut for Thin<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

impl<T: Collection + Serialize> Serialize for Thin<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de, T: Collection + Deserialize<'de>> Deserialize<'de> for Thin<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Thin<T>, D::Error> {
        T::deserialize(deserializer).map(Thin::from)
    }
}
