//! What things look like on a terminal.

use afterimage::id::Role;
use anstyle::{AnsiColor, Color, Effects, Style};

/// Headings of tables.
pub(crate) const HEADING: Style = Style::new().bold();
/// What should not draw the eye.
pub(crate) const DIM: Style = Style::new().effects(Effects::DIMMED);
/// What was searched for.
pub(crate) const HIT: Style = Style::new()
    .fg_color(Some(Color::Ansi(AnsiColor::Black)))
    .bg_color(Some(Color::Ansi(AnsiColor::BrightYellow)))
    .effects(Effects::BOLD);

/// A line that is no longer there.
pub(crate) const REMOVED: Style = Style::new().fg_color(Some(Color::Ansi(AnsiColor::Red)));
/// A line that is new.
pub(crate) const ADDED: Style = Style::new().fg_color(Some(Color::Ansi(AnsiColor::Green)));

/// The style of a chunk's text by the chunk's type.
pub(crate) fn of_type(chunk_type: &str) -> Style {
    match chunk_type {
        "formatting" => DIM,
        "event" => AnsiColor::Cyan.on_default(),
        "speech" => AnsiColor::Green.on_default(),
        "thought" => AnsiColor::Magenta.on_default(),
        "action" => AnsiColor::Yellow.on_default(),
        "result" => AnsiColor::Blue.on_default(),
        "state" => AnsiColor::BrightCyan.on_default(),
        "ambient" => AnsiColor::BrightBlue.on_default(),
        "system" => AnsiColor::Red.on_default(),
        "summary" | "image" | "opaque" => AnsiColor::BrightMagenta.on_default(),
        _ => Style::new(),
    }
}

/// The style of a role's name.
pub(crate) fn of_role(role: Option<Role>) -> Style {
    match role {
        Some(Role::Assistant) => AnsiColor::Green.on_default().effects(Effects::BOLD),
        Some(Role::User) => AnsiColor::Cyan.on_default().effects(Effects::BOLD),
        Some(Role::System) => AnsiColor::Red.on_default().effects(Effects::BOLD),
        None => HEADING,
    }
}
