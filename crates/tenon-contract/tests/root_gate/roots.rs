//! Which folders can be roots, and which folders and targets the gate admits.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use tenon_contract::id::sha256_hex;
use tenon_contract::root::{GateError, RootError, RootGate};

use crate::fixture::{FILES, LINKS, Tree};

#[test]
fn roots_are_real_sorted_and_distinct_and_the_first_given_is_primary() {
    let tree = Tree::new();
    let base = tree.base.to_str().unwrap();
    let gate = RootGate::new([
        tree.base.join("second"),
        tree.base.join("root/link-up/root"),
        tree.base.join("second/../root"),
    ])
    .unwrap();
    assert_eq!(gate.roots(), [format!("{base}/root").as_str(), &format!("{base}/second")]);
    assert_eq!(gate.primary().unwrap(), format!("{base}/second").as_str());
    assert_eq!(gate.key(), sha256_hex(format!(r#"["{base}/root","{base}/second"]"#)));
    let other_order = RootGate::new([tree.base.join("root"), tree.base.join("second")]).unwrap();
    assert_eq!(other_order.key(), gate.key());
}

#[test]
fn empty_set_of_roots_has_a_key() {
    let gate = RootGate::new(Vec::<&str>::new()).unwrap();
    assert_eq!((gate.roots().len(), gate.primary()), (0, None));
    assert_eq!(gate.key(), sha256_hex("[]"));
}

#[test]
fn root_that_is_not_a_utf8_folder_is_rejected() {
    let tree = Tree::new();
    assert!(matches!(RootGate::new([tree.base.join("none")]), Err(RootError::Unresolvable { .. })));
    assert!(matches!(RootGate::new([tree.base.join("root/loop-a")]), Err(RootError::Unresolvable { .. })));
    assert!(matches!(RootGate::new([tree.base.join("root/src/a.ts")]), Err(RootError::NotAFolder { .. })));
    let odd = tree.base.join(OsStr::from_bytes(b"odd-\xff"));
    fs::create_dir(&odd).unwrap();
    symlink(&odd, tree.base.join("odd")).unwrap();
    assert!(matches!(RootGate::new([tree.base.join("odd")]), Err(RootError::NotUtf8 { .. })));
}

#[test]
fn file_system_root_can_be_a_root() {
    let tree = Tree::new();
    let gate = RootGate::new(["/"]).unwrap();
    let secret = gate.admit_path(tree.base.join("outside/secret.ts")).unwrap();
    assert_eq!(gate.read_to_string(&secret, 100).unwrap(), "SECRET");
    assert_eq!(format!("/{}", gate.display(&secret)), secret.as_str());
    assert_eq!(gate.admit_path("/none/none"), Err(GateError::Missing));
}

#[test]
fn display_is_relative_to_the_primary_root() {
    let tree = Tree::new();
    let gate = &tree.gate;
    let shown = |path: &str| gate.display(&gate.admit_path(path).unwrap());
    assert_eq!(shown("link-dir/a.ts"), "src/a.ts");
    assert_eq!(shown("nested/n.ts"), "nested/n.ts");
    let other = gate.admit_path("../second/other.ts").unwrap();
    assert_eq!(gate.display(&other), other.as_str());
    assert_eq!(gate.display(&gate.admit_folder("").unwrap()), ".");
    assert_eq!(gate.display(&gate.admit_folder("link-dir/").unwrap()), "src");
}

#[test]
fn admit_folder_admits_only_folders_inside() {
    let tree = Tree::new();
    let gate = &tree.gate;
    assert_eq!(gate.admit_folder(".").unwrap().as_path(), gate.primary().unwrap());
    assert!(gate.admit_folder("src/").is_ok());
    assert_eq!(gate.admit_folder("src/a.ts"), Err(GateError::NotAFolder));
    assert_eq!(gate.admit_folder("fifo"), Err(GateError::NotAFolder));
    assert_eq!(gate.admit_folder("none"), Err(GateError::Missing));
    assert_eq!(gate.admit_folder(".."), Err(GateError::Denied));
    assert_eq!(gate.admit_folder("link-out-dir"), Err(GateError::Denied));
}

#[test]
fn missing_target_is_admitted_below_an_existing_folder() {
    let tree = Tree::new();
    let gate = &tree.gate;
    let root = gate.primary().unwrap();
    for (path, real) in [
        ("src/a.ts", "src/a.ts"),
        ("link-in.ts", "src/a.ts"),
        ("src/new.ts", "src/new.ts"),
        ("link-dir/new/deep/er.ts", "src/new/deep/er.ts"),
        ("new/../src/./new.ts", "src/new.ts"),
    ] {
        assert_eq!(gate.admit_target(path).unwrap().as_path(), root.join(real), "{path}");
    }
    assert_eq!(
        gate.admit_target("../second/new.ts").unwrap().as_path(),
        root.parent().unwrap().join("second/new.ts")
    );
    for (path, error) in [
        ("../outside/new.ts", GateError::Denied),
        ("../outside/secret.ts", GateError::Denied),
        ("link-out-dir/new.ts", GateError::Denied),
        ("link-out-dir/new/new.ts", GateError::Denied),
        ("dangling-out", GateError::Denied),
        ("dangling-in", GateError::Missing),
        ("dangling-in/new.ts", GateError::Missing),
        ("src/a.ts/new.ts", GateError::Missing),
        ("loop-a/new.ts", GateError::Unresolvable),
        ("src", GateError::NotAFile),
        ("new/", GateError::NotAFile),
        ("fifo", GateError::NotAFile),
        ("", GateError::NotAFile),
    ] {
        assert_eq!(gate.admit_target(path), Err(error), "{path}");
    }
}

#[test]
fn changed_path_is_admitted_if_its_folder_became_a_file() {
    let tree = Tree::new();
    let gate = &tree.gate;
    let root = gate.primary().unwrap();
    for path in ["src", "src/a.ts", "src/gone.ts", "src/a.ts/gone.ts", "gone/deep/er.ts"] {
        assert_eq!(gate.admit_changed(path).unwrap().as_path(), root.join(path), "{path}");
    }
    for path in ["../outside/gone.ts", "link-out-dir/gone.ts", "dangling-out"] {
        assert_eq!(gate.admit_changed(path), Err(GateError::Denied), "{path}");
    }
    assert_eq!(gate.admit_workspace(), Ok(()));
    std::fs::remove_dir_all(root).unwrap();
    assert_eq!(gate.admit_workspace(), Err(GateError::RootMissing));
}

#[test]
fn path_that_is_not_utf8_is_malformed() {
    let tree = Tree::new();
    let path = OsStr::from_bytes(b"src/not-utf8-\xff.ts");
    assert!(tree.base.join("root").join(path).exists());
    assert!(matches!(tree.gate.admit_path(path), Err(GateError::Malformed(_))));
}

#[test]
fn output_filter_answers_like_the_gate() {
    let tree = Tree::new();
    let base = tree.base.to_str().unwrap();
    let mut filter = tree.gate.output_filter();
    let more = [
        "root/src/../src/./a.ts",
        "root/src//a.ts",
        "root/src/a.ts/",
        "root/src",
        "root/src/none.ts",
        "root/src/../../outside/secret.ts",
        "root/link-dir/a.ts",
        "root/link-up/root/src/a.ts",
        "root/link-out-dir/secret.ts",
        "root/none/a.ts",
        "root",
        "outside/secret.ts",
    ];
    let links = LINKS.iter().map(|(name, _)| *name);
    for name in links.chain(FILES.iter().copied()).chain(more) {
        let uri = format!("file://{base}/{}", name.replace(' ', "%20"));
        for _ in 0..2 {
            assert_eq!(filter.admit(&uri), tree.gate.admit_output_uri(&uri), "{name}");
        }
    }
    for number in 0..200 {
        let name = format!("root/many/{number}");
        fs::create_dir_all(tree.base.join(&name)).unwrap();
        fs::write(tree.base.join(&name).join("a.ts"), "").unwrap();
        assert!(filter.admit(&format!("file://{base}/{name}/a.ts")).is_some(), "{name}");
    }
    assert_eq!(filter.admit("https://example.com"), None);
}
