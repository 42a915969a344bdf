use std::{
    any::Any,
    fmt,
    sync::{Mutex, PoisonError},
};

/// What somebody made of the packed frames of a history and takes up the next time: they never
/// change. A history knows nothing of it, and lets go of it when it forgets frames.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Option<Box<dyn Any + Send>>>);

impl Kept {
    /// Takes what was put, where it is a `T`. Meanwhile others find nothing.
    pub(crate) fn take<T: Any + Send>(&self) -> Option<T> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.take()?.downcast().ok().map(|made| *made)
    }

    pub(crate) fn put<T: Any + Send>(&self, made: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(made));
    }
}

/// A copy goes its own way, and makes its own.
impl Clone for Kept {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}
