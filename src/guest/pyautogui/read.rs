//! The Python that is understood: imports, assignments and calls, with literals and nothing else.

/// A literal. Names of pyautogui stand for themselves: its easings are functions.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Literal>),
    Name(String),
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Statement {
    /// `import NAME, NAME`.
    Import(Vec<String>),
    /// `NAME.NAME = LITERAL`.
    Assign(String, Literal),
    /// `NAME.NAME(LITERAL, NAME=LITERAL)`.
    Call {
        function: String,
        arguments: Vec<Literal>,
        named: Vec<(String, Literal)>,
    },
}

/// The statements of a program; none if there is anything else in it.
pub(super) fn statements(source: &str) -> Option<Vec<Statement>> {
    let mut reader = Reader { rest: source };
    let mut statements = Vec::new();
    loop {
        reader.skip(|c| c.is_ascii_whitespace() || c == ';');
        if reader.take("#") {
            reader.skip(|c| c != '\n');
            continue;
        }
        if reader.rest.is_empty() {
            return Some(statements);
        }
        statements.push(reader.statement()?);
        reader.skip(is_blank);
        if !(reader.rest.is_empty() || reader.rest.starts_with([';', '\n', '\r', '#'])) {
            return None;
        }
    }
}

fn is_blank(c: char) -> bool {
    c == ' ' || c == '\t'
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(is_skipped);
    }

    fn take(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// A token within brackets, where ends of lines are blanks.
    fn take_within(&mut self, token: &str) -> bool {
        self.skip(|c| c.is_ascii_whitespace());
        self.take(token)
    }

    fn run(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len());
        let (run, rest) = self.rest.split_at(end);
        self.rest = rest;
        run
    }

    /// A name with its dots.
    fn name(&mut self) -> Option<&'a str> {
        let name = self.run(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
        let begins = name.chars().next()?;
        (!begins.is_ascii_digit() && begins != '.').then_some(name)
    }

    fn statement(&mut self) -> Option<Statement> {
        let name = self.name()?;
        self.skip(is_blank);
        if name == "import" {
            return self.import();
        }
        if self.take("(") {
            return self.call(name);
        }
        if self.take("=") {
            self.skip(is_blank);
            return Some(Statement::Assign(name.to_owned(), self.literal()?));
        }
        None
    }

    fn import(&mut self) -> Option<Statement> {
        let mut names = Vec::new();
        loop {
            names.push(self.name()?.to_owned());
            self.skip(is_blank);
            if !self.take(",") {
                return Some(Statement::Import(names));
            }
            self.skip(is_blank);
        }
    }

    fn call(&mut self, function: &str) -> Option<Statement> {
        let (mut arguments, mut named) = (Vec::new(), Vec::new());
        while !self.take_within(")") {
            match self.name_of_argument() {
                Some(name) => named.push((name, self.literal()?)),
                // A position behind a name is an error in Python.
                None if named.is_empty() => arguments.push(self.literal()?),
                None => return None,
            }
            if !self.take_within(",") && !self.rest.starts_with(')') {
                return None;
            }
        }
        Some(Statement::Call {
            function: function.to_owned(),
            arguments,
            named,
        })
    }

    /// `NAME=`, if it stands there.
    fn name_of_argument(&mut self) -> Option<String> {
        self.skip(|c| c.is_ascii_whitespace());
        let mut ahead = Reader { rest: self.rest };
        let name = ahead.name()?.to_owned();
        ahead.skip(is_blank);
        if !ahead.take("=") || ahead.rest.starts_with('=') {
            return None;
        }
        ahead.skip(is_blank);
        self.rest = ahead.rest;
        Some(name)
    }

    fn literal(&mut self) -> Option<Literal> {
        self.skip(|c| c.is_ascii_whitespace());
        match self.rest.chars().next()? {
            '\'' | '"' => self.text().map(Literal::Text),
            '[' => self.list("[", "]"),
            '(' => self.list("(", ")"),
            '-' | '0'..='9' | '.' => self.number(),
            _ => Some(match self.name()? {
                "None" => Literal::None,
                "True" => Literal::Bool(true),
                "False" => Literal::Bool(false),
                name => Literal::Name(name.to_owned()),
            }),
        }
    }

    fn list(&mut self, open: &str, close: &str) -> Option<Literal> {
        let mut list = Vec::new();
        self.take(open);
        while !self.take_within(close) {
            list.push(self.literal()?);
            if !self.take_within(",") {
                // One thing in parentheses is that thing.
                let is_list = close == "]" || list.len() > 1;
                return (self.take_within(close) && is_list).then_some(Literal::List(list));
            }
        }
        Some(Literal::List(list))
    }

    fn number(&mut self) -> Option<Literal> {
        let is_negative = self.take("-");
        let digits = self.run(|c| c.is_ascii_alphanumeric() || c == '.');
        // Rust reads words as numbers, Python leading zeros as a mistake.
        let is_plain = digits
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'.'));
        if !is_plain || (digits.len() > 1 && digits.starts_with('0') && !digits.contains('.')) {
            return None;
        }
        if digits.contains('.') {
            let value: f64 = digits.parse().ok()?;
            return Some(Literal::Float(if is_negative { -value } else { value }));
        }
        let value: i64 = digits.parse().ok()?;
        Some(Literal::Int(if is_negative { -value } else { value }))
    }

    fn text(&mut self) -> Option<String> {
        let quote = self.rest.chars().next()?;
        let triple = [quote; 3].iter().collect::<String>();
        if self.rest.starts_with(&triple) {
            return None;
        }
        let mut text = String::new();
        let mut chars = self.rest[1..].chars();
        loop {
            match chars.next()? {
                c if c == quote => break,
                '\n' => return None,
                '\\' => text.push(escape(&mut chars)?),
                c => text.push(c),
            }
        }
        self.rest = chars.as_str();
        // Two in a row are one text.
        let mut ahead = Reader { rest: self.rest };
        ahead.skip(is_blank);
        (!ahead.rest.starts_with(['\'', '"'])).then_some(text)
    }
}

/// What an escape stands for, where it stands for a character.
fn escape(chars: &mut std::str::Chars<'_>) -> Option<char> {
    Some(match chars.next()? {
        c @ ('\\' | '\'' | '"') => c,
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        'x' => hex(chars, 2)?,
        'u' => hex(chars, 4)?,
        'U' => hex(chars, 8)?,
        _ => return None,
    })
}

fn hex(chars: &mut std::str::Chars<'_>, digits: usize) -> Option<char> {
    let (number, rest) = chars.as_str().split_at_checked(digits)?;
    // Rust takes a sign, too.
    let is_hex = number.bytes().all(|byte| byte.is_ascii_hexdigit());
    let code = u32::from_str_radix(number, 16).ok().filter(|_| is_hex)?;
    *chars = rest.chars();
    char::from_u32(code)
}
