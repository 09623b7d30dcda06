//! A step path has one spelling, and its sort key orders like the tree.

use crate::path::StepPath;

/// `data` is two paths, separated by a space.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (first, second) = text.split_once(' ').unwrap_or((text, ""));
    let Ok(path) = first.parse::<StepPath>() else { return };
    assert_eq!(path.to_string(), first);
    assert_eq!(StepPath::from_sort_key(&path.sort_key()).as_ref(), Some(&path));
    assert_eq!(
        serde_json::from_str::<StepPath>(&serde_json::json!(path).to_string()).ok().as_ref(),
        Some(&path)
    );
    if let Some(parent) = path.parent() {
        assert!(path.is_below(&parent));
        assert_eq!(parent.child(path.ordinal()), path);
    }
    if let Ok(other) = second.parse::<StepPath>() {
        assert_eq!(path.cmp(&other), path.sort_key().cmp(&other.sort_key()));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_input_of_the_corpus_passes() {
        tenon_testkit::corpus::for_each("step_paths", super::check);
    }
}
