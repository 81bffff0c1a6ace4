//! What `#[boxed]` makes of signatures.

use abide_macros::boxed;
use std::pin::Pin;

/// Two references, and an output that borrows none of them.
#[boxed]
async fn joined(one: &str, other: Option<&str>) -> Result<String, ()> {
    tokio::task::yield_now().await;
    Ok(format!("{one}{}", other.unwrap_or_default()))
}

struct Pair<'a>(&'a str, &'a str);

/// A pattern, an elided lifetime in a type, and a function type with lifetimes of its own.
#[boxed]
async fn swapped(Pair(one, other): Pair<'_>, make: Box<dyn Fn(&str) -> String + Send>) -> String {
    make(other) + one
}

/// A named lifetime.
#[boxed]
async fn longest<'a>(one: &'a str, other: &'a str, _: &str) -> &'a str {
    if one.len() > other.len() { one } else { other }
}

struct OnDrop<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}

/// An argument that the body does not name lives as long as the future.
#[boxed]
async fn holds(_guard: OnDrop<'_>) {
    tokio::task::yield_now().await;
}

#[tokio::test]
async fn a_boxed_function_returns_a_sendable_pinned_box_and_the_same_result() {
    let future: Pin<Box<dyn Future<Output = Result<String, ()>> + Send + '_>> = joined("a", Some("b"));
    assert_eq!(future.await, Ok("ab".to_owned()));
    assert_eq!(swapped(Pair("a", "b"), Box::new(str::to_uppercase)).await, "Ba");
    assert_eq!(longest("a", "bc", "").await, "bc");
}

#[tokio::test]
async fn an_argument_is_dropped_when_the_future_ends_and_not_when_it_is_made() {
    let dropped = std::sync::atomic::AtomicBool::new(false);
    let future = holds(OnDrop(&dropped));
    assert!(!dropped.load(std::sync::atomic::Ordering::SeqCst));
    future.await;
    assert!(dropped.load(std::sync::atomic::Ordering::SeqCst));
}
