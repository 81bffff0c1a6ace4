//! State of modules, by its type.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;

/// One value per type. Filled once, before anyone reads it.
#[derive(Default)]
pub(crate) struct Parts(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

impl Parts {
    /// Adds the state of a module.
    pub(crate) fn with<T: Send + Sync + 'static>(mut self, part: T) -> Self {
        let before = self.0.insert(TypeId::of::<T>(), Box::new(part));
        assert!(before.is_none(), "{} is made twice", type_name::<T>());
        self
    }

    /// The state of a module.
    pub(super) fn get<T: Send + Sync + 'static>(&self) -> &T {
        let part = self.0.get(&TypeId::of::<T>()).and_then(|part| part.downcast_ref());
        part.unwrap_or_else(|| panic!("compose.rs makes no {}", type_name::<T>()))
    }
}
