//! Questions by name, position, mention and base.

use camino::Utf8Path;
use tenon_contract::clock::Clock;
use tenon_index::{
    DeclarationKind, IndexOptions, MatchTier, PathFilter, SymbolFilter, SymbolQuery, SyntaxIndex,
};

use crate::workspace::{Workspace, find, found};

fn workspace() -> Workspace {
    Workspace::new(&[
        (
            "django/db/models/query.py",
            "class QuerySet(AltersData):\n    filter_depth = 1\n\n    def filter(self):\n        pass\n\n    def get_resolver_match(self):\n        pass\n",
        ),
        (
            "django/template/defaultfilters.py",
            "def filter(value):\n    return value\n\ndef Filter2(): pass\n",
        ),
        ("tests/queries/tests.py", "class FilterTests:\n    def filter(self):\n        QuerySet()\n"),
        ("vendor/lib.py", "def filter(): pass\n"),
        ("a.py", "filter = 1\n"),
        (
            "src/queue.rs",
            "pub struct Queue;\n\nimpl Queue {\n    pub fn push(&self) {}\n}\n\nimpl Drain for Queue {\n    fn drain(&self) {}\n}\n",
        ),
        ("lib/install.sh", "install::run() {\n  echo\n}\n"),
        (
            "web/over.ts",
            "export function load(a: string): void;\nexport function load(a: number): void;\nexport function load(a: unknown): void {}\n",
        ),
    ])
}

#[test]
fn exact_matches_are_ranked_by_kind_class_and_path() {
    let workspace = workspace();
    let view = workspace.fresh().view();
    let matches = find(&view, "filter");
    assert_eq!((matches.tier, matches.total), (MatchTier::Exact, 5));
    assert_eq!(
        found(&view, "filter"),
        [
            "django/template/defaultfilters.py#filter",
            "django/db/models/query.py#QuerySet.filter",
            "tests/queries/tests.py#FilterTests.filter",
            "vendor/lib.py#filter",
            "a.py#filter",
        ]
    );
}

#[test]
fn only_the_best_tier_answers() {
    let workspace = workspace();
    let view = workspace.fresh().view();
    for (name, tier, expected) in [
        ("filter2", MatchTier::AnyCase, "django/template/defaultfilters.py#Filter2"),
        ("QUERYSET.FILTER", MatchTier::AnyCase, "django/db/models/query.py#QuerySet.filter"),
        ("FilterT", MatchTier::Prefix, "tests/queries/tests.py#FilterTests"),
        ("resolverMatch", MatchTier::Subword, "django/db/models/query.py#QuerySet.get_resolver_match"),
    ] {
        assert_eq!(find(&view, name).tier, tier, "{name}");
        assert_eq!(found(&view, name), [expected], "{name}");
    }
    assert_eq!(find(&view, "absent").total, 0);
}

#[test]
fn trailing_part_of_name_and_path_is_enough() {
    let workspace = workspace();
    let view = workspace.fresh().view();
    let expected = ["django/db/models/query.py#QuerySet.filter"];
    for name in [
        "QuerySet.filter",
        "QuerySet::filter()",
        "QuerySet/filter",
        "QuerySet#filter",
        "query.py#filter",
        "models/query.py#QuerySet.filter",
        "django/db/models/query.py#filter",
        "query.py:4",
        "query.QuerySet.filter",
        "django.db.models.QuerySet.filter",
    ] {
        assert_eq!(found(&view, name), expected, "{name}");
    }
    assert_eq!(found(&view, "ery.py#filter"), [""; 0]);
    assert_eq!(found(&view, "query.py:3"), ["django/db/models/query.py#QuerySet"]);
    assert_eq!(found(&view, "query.py:99"), [""; 0]);
    assert_eq!(found(&view, "install::run"), ["lib/install.sh#install::run"]);
}

#[test]
fn filter_restricts_kind_and_path() {
    let workspace = workspace();
    let view = workspace.fresh().view();
    let query = SymbolQuery::parse("filter").unwrap();
    let count = |kinds: &[DeclarationKind], path: Option<&str>| {
        let path = path.map(|path| PathFilter::parse(path).unwrap());
        view.find(&query, &SymbolFilter { kinds: kinds.to_vec(), path }).total
    };
    assert_eq!(count(&[DeclarationKind::Method], None), 2);
    assert_eq!(count(&[DeclarationKind::Method, DeclarationKind::Variable], None), 3);
    assert_eq!(count(&[], Some("django")), 2);
    assert_eq!(count(&[], Some("django/db/models/query.py")), 1);
    assert_eq!(count(&[], Some("**/*filters.py")), 1);
}

#[test]
fn impl_blocks_are_containers_and_not_found_by_name() {
    let workspace = workspace();
    let view = workspace.fresh().view();
    assert_eq!(found(&view, "Queue.push"), ["src/queue.rs#Queue.push"]);
    assert_eq!(found(&view, "Queue"), ["src/queue.rs#Queue"]);
    let filter = SymbolFilter { kinds: vec![DeclarationKind::Impl], path: None };
    assert_eq!(view.find(&SymbolQuery::parse("Queue").unwrap(), &filter).total, 2);
}

#[test]
fn overloads_are_kept_and_grouped() {
    let workspace = workspace();
    let view = workspace.fresh().view();
    let matches = find(&view, "load");
    assert_eq!(matches.total, 3);
    let groups = matches.groups();
    assert_eq!(groups.len(), 1);
    let lines: Vec<u32> = groups[0].iter().map(|symbol| symbol.range().first_line).collect();
    assert_eq!(lines, [1, 2, 3]);
    assert_eq!(matches.symbols[1].same_name_path().len(), 3);
}

#[test]
fn enclosing_parent_and_children_agree() {
    let workspace = workspace();
    let view = workspace.fresh().view();
    let method = view.enclosing("django/db/models/query.py", 5).unwrap();
    assert_eq!(method.name_path(), "QuerySet.filter");
    let class = method.parent().unwrap();
    let children: Vec<&str> = class.children().map(|child| child.name()).collect();
    assert_eq!(children, ["filter_depth", "filter", "get_resolver_match"]);
    assert_eq!(view.symbol(class.id()).unwrap().name(), "QuerySet");
    assert!(view.enclosing("django/db/models/query.py", 100).is_none());
    assert!(view.enclosing("absent.py", 1).is_none());
}

#[test]
fn id_of_a_changed_file_is_not_found() {
    let workspace = workspace();
    let index = workspace.fresh();
    let id = find(&index.view(), "Filter2").symbols[0].id();
    workspace.write("django/template/defaultfilters.py", "x = 1\n");
    index.update_files(&[workspace.path("django/template/defaultfilters.py")]);
    assert!(index.view().symbol(id).is_none());
}

#[test]
fn nearest_names_are_ordered_by_distance_and_name() {
    let workspace = workspace();
    let view = workspace.fresh().view();
    let names = |name: &str| -> Vec<&str> {
        view.nearest_names(name, 3).iter().map(|symbol| symbol.name()).collect()
    };
    assert_eq!(names("fitler"), ["filter", "Filter2"]);
    assert_eq!(names("QuerySets"), ["QuerySet"]);
    assert_eq!(names("entirely_different"), [""; 0]);
    assert_eq!(names(""), [""; 0]);
}

#[test]
fn mentions_are_found_without_reading() {
    let workspace = workspace();
    let view = workspace.fresh().view();
    let paths =
        |name: &str| -> Vec<&str> { view.files_mentioning(name).iter().map(|file| file.path()).collect() };
    assert_eq!(paths("QuerySet"), ["django/db/models/query.py", "tests/queries/tests.py"]);
    assert_eq!(paths("install::run"), ["lib/install.sh"]);
    assert_eq!(paths(""), [""; 0]);
    assert_eq!(paths("::"), [""; 0]);
}

#[test]
fn subtypes_are_found_by_the_last_segment_of_their_bases() {
    let workspace = workspace();
    workspace.write(
        "django/sub.py",
        "class Sub(models.QuerySet, Generic[T]): pass\nclass Other(NotQuerySet): pass\n",
    );
    let view = workspace.fresh().view();
    let names = |name: &str| -> Vec<String> {
        view.subtypes_by_name(name)
            .iter()
            .map(|symbol| format!("{} {}", symbol.kind(), symbol.name_path()))
            .collect()
    };
    assert_eq!(names("QuerySet"), ["class Sub"]);
    assert_eq!(names("Generic"), ["class Sub"]);
    assert_eq!(names("Drain"), ["impl Queue"]);
}

#[test]
fn most_mentioned_file_is_first() {
    let workspace = Workspace::new(&[
        ("core.py", "class Engine: pass\ndef run(): pass\n"),
        ("one.py", "from core import Engine\ndef run(): pass\n"),
        ("two.py", "from core import Engine\nfrom one import make_helper\ndef run(): pass\n"),
        ("three.py", "import core\ncore.Engine\ndef run(): pass\n"),
        ("one_helper.py", "def make_helper(): pass\n"),
    ]);
    let view = workspace.fresh().view();
    let counts: Vec<(&str, u32)> =
        view.reference_counts().iter().map(|(file, count)| (file.path(), *count)).collect();
    assert_eq!(counts, [("core.py", 3), ("one_helper.py", 1), ("one.py", 0), ("three.py", 0), ("two.py", 0)]);
}

#[test]
fn files_below_a_folder_are_in_path_order() {
    let workspace = Workspace::new(&[("a/z.py", ""), ("a/b/c.py", ""), ("a.py", ""), ("ab/c.py", "")]);
    let view = workspace.fresh().view();
    let below = |folder: &str| -> Vec<&str> { view.below(folder).map(|file| file.path()).collect() };
    assert_eq!(below("a"), ["a/b/c.py", "a/z.py"]);
    assert_eq!(below("a/"), ["a/b/c.py", "a/z.py"]);
    assert_eq!(below(""), ["a.py", "a/b/c.py", "a/z.py", "ab/c.py"]);
    assert_eq!(below("."), below(""));
    assert_eq!(below("absent"), [""; 0]);
}

#[test]
fn files_that_contain_the_name_have_all_exact_matches() {
    let workspace = workspace();
    let whole = workspace.fresh().view();
    let files = workspace.files();
    for name in
        ["filter", "QuerySet.filter", "queue.rs#Queue", "load", "install::run", "django.template.filter"]
    {
        let unread = workspace.open();
        let early = unread.view_of_name(&files, &SymbolQuery::parse(name).unwrap()).unwrap();
        assert_eq!(find(&early, name).tier, MatchTier::Exact, "{name}");
        assert_eq!(found(&early, name), found(&whole, name), "{name}");
        assert!(early.files().len() < whole.files().len(), "{name}");
    }
    let unread = workspace.open();
    for name in ["Point::operator==", "query.py:4", "größe"] {
        assert!(unread.view_of_name(&files, &SymbolQuery::parse(name).unwrap()).is_none(), "{name}");
    }
}

/// What answers before all files are parsed rely on.
#[test]
fn every_name_is_written_in_its_file() {
    let folder = Utf8Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/languages"));
    let mut files = Vec::new();
    for language in folder.read_dir_utf8().unwrap() {
        let cases = language.unwrap().path().join("cases");
        files.extend(cases.read_dir_utf8().into_iter().flatten().map(|entry| entry.unwrap().into_path()));
    }
    let options = IndexOptions { root: folder.to_owned(), store: None, clock: Clock::system() };
    let index = SyntaxIndex::open(options);
    index.replace_files(&files);
    let view = index.view();
    assert!(view.files().len() > 13, "every language has a case");
    for file in view.files() {
        let text = std::fs::read(folder.join(file.path())).unwrap();
        let text = String::from_utf8_lossy(&text);
        for symbol in file.symbols() {
            let name = symbol.name();
            let is_identifier = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            assert!(!is_identifier || text.contains(name), "{}: {name}", file.path());
        }
    }
}
