//! Source files of the workspace and what is in them: functions, paths, macros, method calls, test lines.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use proc_macro2::Span;
use syn::visit::{self, Visit};

/// Folders that hold no text of this project.
const SKIPPED: [&str; 5] = ["target", "node_modules", ".git", "data", "dist"];

/// A function with a body.
pub struct Function {
    pub name: String,
    /// From the signature to the closing brace.
    pub lines: usize,
    pub parameters: usize,
    pub test: bool,
}

/// A name that is mentioned: a path, a macro or a method.
pub struct Mention {
    pub name: String,
    pub line: usize,
    pub test: bool,
}

/// One Rust file.
pub struct Source {
    /// Relative to the workspace, with forward slashes.
    pub path: String,
    pub text: String,
    /// True when all of it is test code.
    pub test: bool,
    pub functions: Vec<Function>,
    pub paths: Vec<Mention>,
    pub macros: Vec<Mention>,
    pub methods: Vec<Mention>,
    test_lines: usize,
    test_modules: Vec<String>,
}

/// The workspace's folder.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file under the workspace whose name ends with one of `extensions`, relative to it and sorted.
pub fn files(extensions: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(root().join(&folder)).expect("a folder that was just listed");
        for entry in entries.map(|entry| entry.expect("a readable folder")) {
            let name = entry.file_name().into_string().expect("UTF-8 file names");
            let path = folder.join(&name);
            if entry.file_type().expect("a file type").is_dir() {
                if !SKIPPED.contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if extensions.iter().any(|end| name.ends_with(end)) {
                found.push(path.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    found.sort();
    found
}

/// The text of a file of the workspace.
pub fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect("a file that was just listed")
}

/// Every Rust file of the workspace.
pub fn workspace() -> Vec<Source> {
    let mut sources: Vec<Source> = files(&[".rs"])
        .into_iter()
        .map(|path| {
            let test = path.starts_with("tests/") || path.contains("/tests/") || path.contains("/examples/");
            let text = read(&path);
            Source::parse(path, text, test)
        })
        .collect();
    let test_files: HashSet<String> = sources
        .iter()
        .flat_map(|source| {
            source
                .test_modules
                .iter()
                .flat_map(|module| source.module_files(module))
        })
        .collect();
    for source in &mut sources {
        let folder = |file: &String| {
            let stem = file.trim_end_matches(".rs").trim_end_matches("/mod");
            source.path.starts_with(&format!("{stem}/"))
        };
        // What a test module declares is test code too.
        source.test |= test_files.contains(&source.path) || test_files.iter().any(folder);
    }
    sources
}

impl Source {
    pub fn parse(path: String, text: String, test: bool) -> Self {
        let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{path} does not parse: {error}"));
        let mut source = Self {
            path,
            text,
            test,
            functions: Vec::new(),
            paths: Vec::new(),
            macros: Vec::new(),
            methods: Vec::new(),
            test_lines: 0,
            test_modules: Vec::new(),
        };
        Reader {
            source: &mut source,
            in_test: test,
        }
        .visit_file(&file);
        source
    }

    /// Lines outside test modules; none for a test file.
    pub fn production_lines(&self) -> usize {
        if self.test {
            return 0;
        }
        self.text.lines().count() - self.test_lines
    }

    /// Where a module declared in this file may live.
    fn module_files(&self, module: &str) -> [String; 2] {
        if module.ends_with(".rs") {
            let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            return [format!("{folder}/{module}"), String::new()];
        }
        let stem = self.path.trim_end_matches(".rs");
        let folder = match stem.rsplit_once('/') {
            Some((folder, "mod" | "lib" | "main")) => folder,
            _ => stem,
        };
        [
            format!("{folder}/{module}.rs"),
            format!("{folder}/{module}/mod.rs"),
        ]
    }
}

struct Reader<'a> {
    source: &'a mut Source,
    in_test: bool,
}

impl Reader<'_> {
    fn mention(&self, name: String, span: Span) -> Mention {
        Mention {
            name,
            line: span.start().line,
            test: self.in_test,
        }
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let first = signature.fn_token.span.start().line;
        let last = block.brace_token.span.close().end().line;
        self.source.functions.push(Function {
            name: signature.ident.to_string(),
            lines: last - first + 1,
            parameters: signature.inputs.len(),
            test: self.in_test,
        });
    }

    fn within(&mut self, test: bool, go: impl FnOnce(&mut Self)) {
        let before = self.in_test;
        self.in_test |= test;
        go(self);
        self.in_test = before;
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let test = is_test(&module.attrs);
        if test && !self.in_test {
            let end = module
                .content
                .as_ref()
                .map_or(module.mod_token.span, |(brace, _)| brace.span.close());
            let start = module
                .attrs
                .first()
                .map_or(module.mod_token.span, |attribute| attribute.pound_token.span);
            self.source.test_lines += end.end().line - start.start().line + 1;
            if module.content.is_none() {
                let name = path_attribute(&module.attrs).unwrap_or_else(|| module.ident.to_string());
                self.source.test_modules.push(name);
            }
        }
        self.within(test, |reader| visit::visit_item_mod(reader, module));
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.within(is_test(&item.attrs), |reader| {
            reader.function(&item.sig, &item.block);
            visit::visit_item_fn(reader, item);
        });
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.within(is_test(&item.attrs), |reader| {
            reader.function(&item.sig, &item.block);
            visit::visit_impl_item_fn(reader, item);
        });
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let test = is_test(&item.attrs);
        let mut names = Vec::new();
        flatten(&item.tree, "", &mut names);
        self.within(test, |reader| {
            for name in names {
                let mention = reader.mention(name, item.use_token.span);
                reader.source.paths.push(mention);
            }
        });
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let name: Vec<String> = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        if let Some(first) = path.segments.first() {
            let mention = self.mention(name.join("::"), first.ident.span());
            self.source.paths.push(mention);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        if let Some(last) = mac.path.segments.last() {
            let mention = self.mention(last.ident.to_string(), last.ident.span());
            self.source.macros.push(mention);
        }
        visit::visit_macro(self, mac);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let mention = self.mention(call.method.to_string(), call.method.span());
        self.source.methods.push(mention);
        visit::visit_expr_method_call(self, call);
    }
}

/// `#[test]`, `#[cfg(test)]` and conditions that contain `test` without `not`.
fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            let words: Vec<String> = list
                .tokens
                .to_string()
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .map(str::to_owned)
                .collect();
            words.iter().any(|word| word == "test") && !words.iter().any(|word| word == "not")
        }
        _ => false,
    })
}

/// The file named by `#[path = "…"]`.
fn path_attribute(attributes: &[syn::Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit {
                lit: syn::Lit::Str(path),
                ..
            }) => Some(path.value()),
            _ => None,
        },
        _ => None,
    })
}

fn flatten(tree: &syn::UseTree, before: &str, names: &mut Vec<String>) {
    let joined = |name: &str| {
        if before.is_empty() {
            name.to_owned()
        } else {
            format!("{before}::{name}")
        }
    };
    match tree {
        syn::UseTree::Path(path) => flatten(&path.tree, &joined(&path.ident.to_string()), names),
        syn::UseTree::Name(name) => names.push(joined(&name.ident.to_string())),
        syn::UseTree::Rename(rename) => names.push(joined(&rename.ident.to_string())),
        syn::UseTree::Glob(_) => names.push(before.to_owned()),
        syn::UseTree::Group(group) => group.items.iter().for_each(|item| flatten(item, before, names)),
    }
}
