//! Same files, same answers, whatever happened before.

use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::workspace::{Workspace, dump};

const PATHS: [&str; 6] = ["a.py", "b/a.py", "b/c.py", "d.rs", "b/e/f.ts", "notes.txt"];
const TEXTS: [&str; 6] = [
    "",
    "class A(B):\n    def c(self): pass\n",
    "def a(): pass\ndef b(): pass\n",
    "fn a() {}\nstruct B;\nimpl C for B {}\n",
    "export class A extends B { c() {} }\n",
    "class broken(:\n  def x(\n",
];

#[derive(Clone, Copy, Debug)]
enum Step {
    Write {
        path: usize,
        text: usize,
    },
    Delete {
        path: usize,
    },
    Move {
        from: usize,
        to: usize,
    },
    /// Reports the changes so far.
    Update,
    Replace,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let path = 0..PATHS.len();
    prop_oneof![
        4 => (path.clone(), 0..TEXTS.len()).prop_map(|(path, text)| Step::Write { path, text }),
        2 => path.clone().prop_map(|path| Step::Delete { path }),
        1 => (path.clone(), path).prop_map(|(from, to)| Step::Move { from, to }),
        3 => Just(Step::Update),
        1 => Just(Step::Replace),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_updates_equals_a_fresh_build(steps in proptest::collection::vec(step(), 1..25)) {
        let workspace = Workspace::new(&[]);
        let mut index = workspace.open();
        let mut changed = BTreeSet::new();
        for step in steps {
            match step {
                Step::Write { path, text } => {
                    workspace.write(PATHS[path], TEXTS[text]);
                    changed.insert(path);
                }
                Step::Delete { path } => {
                    let _ = std::fs::remove_file(workspace.path(PATHS[path]));
                    changed.insert(path);
                }
                Step::Move { from, to } => {
                    if workspace.path(PATHS[from]).exists() {
                        let target = workspace.path(PATHS[to]);
                        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
                        std::fs::rename(workspace.path(PATHS[from]), target).unwrap();
                        changed.extend([from, to]);
                    }
                }
                Step::Update => {
                    let paths: Vec<_> = changed.iter().map(|path| workspace.path(PATHS[*path])).collect();
                    index.update_files(&paths);
                    changed.clear();
                    prop_assert_eq!(dump(&index.view()), dump(&workspace.fresh().view()));
                }
                Step::Replace => {
                    index.replace_files(&workspace.files());
                    changed.clear();
                }
                Step::Restart => {
                    index.save().unwrap();
                    index = workspace.open();
                    index.replace_files(&workspace.files());
                    changed.clear();
                }
            }
        }
        index.replace_files(&workspace.files());
        prop_assert_eq!(dump(&index.view()), dump(&workspace.fresh().view()));
    }
}
