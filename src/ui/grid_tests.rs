use super::*;
use proptest::prelude::*;

/// What a terminal shows after these bytes: symbols, colours and weight of every cell.
type Shown = Vec<(String, vt100::Color, vt100::Color, bool, bool)>;

fn shown(parser: &vt100::Parser) -> Shown {
    let (rows, columns) = parser.screen().size();
    let places = (0..rows.get()).flat_map(|y| (0..columns.get()).map(move |x| (y, x)));
    let look = |(y, x)| {
        let cell = parser.screen().cell(y, x).unwrap();
        let text = match cell.contents() {
            "" => " ",
            text => text,
        };
        (text.to_owned(), cell.fgcolor(), cell.bgcolor(), cell.bold(), cell.inverse())
    };
    places.map(look).collect()
}

fn terminal(width: u16, height: u16) -> vt100::Parser {
    let cells = |n| std::num::NonZeroU16::new(n).unwrap();
    vt100::Parser::new(cells(height), cells(width), 0)
}

/// One text somewhere.
type Write = (u16, u16, String, u8);

fn writes() -> impl Strategy<Value = Vec<Write>> {
    let letter = prop_oneof![
        6 => prop::char::range(' ', '~').prop_map(String::from),
        1 => Just("訓".to_owned()),
        1 => Just("e\u{301}".to_owned()),
        1 => Just("█".to_owned()),
    ];
    let text = prop::collection::vec(letter, 0..12).prop_map(|letters| letters.concat());
    prop::collection::vec((0..20_u16, 0..4_u16, text, any::<u8>()), 0..12)
}

fn style(seed: u8) -> Style {
    let colors = [
        Color::Reset,
        Color::Red,
        Color::DarkGray,
        Color::White,
        Color::Indexed(200),
        Color::Rgb(1, 2, 3),
    ];
    let mut style = Style::reset().fg(colors[usize::from(seed) % colors.len()]);
    if seed & 64 != 0 {
        style = style.add_modifier(Modifier::BOLD);
    }
    if seed & 128 != 0 {
        style = style.bg(Color::Blue).add_modifier(Modifier::REVERSED);
    }
    style
}

/// Looks are numbered as in `before`, where there is one.
fn drawn(writes: &[Write], before: Option<&Grid>) -> Grid {
    let mut grid = Grid::new(20, 4);
    if let Some(before) = before {
        grid.number_as(before);
    }
    for (x, y, text, seed) in writes {
        grid.put(*x, *y, text, style(*seed), 20);
    }
    grid
}

proptest! {
    /// The difference of two screens makes the one of the other, whatever they are.
    #[test]
    fn a_difference_makes_the_same_screen_as_a_full_drawing(
        frames in prop::collection::vec(writes(), 1..5),
        alike in any::<bool>(),
    ) {
        let mut step = terminal(20, 4);
        let mut before: Option<Grid> = None;
        for frame in &frames {
            let grid = drawn(frame, before.as_ref().filter(|_| alike));
            let (mut bytes, mut whole) = (Vec::new(), Vec::new());
            difference(before.as_ref(), &grid, &mut bytes);
            step.process(&bytes);
            difference(None, &grid, &mut whole);
            let mut full = terminal(20, 4);
            full.process(&whole);
            prop_assert_eq!(shown(&step), shown(&full));
            bytes.clear();
            difference(Some(&grid), &grid, &mut bytes);
            prop_assert!(bytes.is_empty(), "an unchanged screen needs no bytes");
            before = Some(grid);
        }
    }

    /// It shows what ratatui's own buffer and backend show of the same cells.
    #[test]
    fn it_looks_as_drawn_by_ratatui(frame in writes()) {
        let grid = drawn(&frame, None);
        let mut buffer = Buffer::empty(grid.area());
        grid.copy_to(&mut buffer, grid.area());
        let mut theirs = Vec::new();
        let mut backend = ratatui::backend::CrosstermBackend::new(&mut theirs);
        let blank = Buffer::empty(grid.area());
        ratatui::backend::Backend::draw(&mut backend, blank.diff(&buffer).into_iter()).unwrap();
        let mut ours = Vec::new();
        difference(None, &grid, &mut ours);
        let (mut a, mut b) = (terminal(20, 4), terminal(20, 4));
        a.process(&theirs);
        b.process(&ours);
        let colour = |cell: &(String, vt100::Color, vt100::Color, bool, bool)| {
            (cell.0.clone(), cell.3, cell.4)
        };
        let of = |parser: &vt100::Parser| shown(parser).iter().map(colour).collect::<Vec<_>>();
        prop_assert_eq!(of(&a), of(&b));
    }
}

#[test]
fn nothing_leaves_the_grid_and_half_a_wide_character_is_none() {
    let mut grid = Grid::new(4, 1);
    assert_eq!(grid.put(0, 0, "ab訓練", Style::reset(), 9), 4);
    assert_eq!(grid.put(3, 0, "x", Style::reset(), 9), 4);
    assert_eq!(grid.put(0, 1, "beyond", Style::reset(), 9), 0);
    let mut bytes = Vec::new();
    difference(Some(&Grid::new(4, 1)), &grid, &mut bytes);
    assert_eq!(String::from_utf8_lossy(&bytes), "\x1b[1;1Hab x");
}

#[test]
fn a_change_costs_few_bytes() {
    let line = |text: &str| {
        let mut grid = Grid::new(40, 2);
        grid.put(0, 1, text, Style::reset(), 40);
        grid
    };
    let mut bytes = Vec::new();
    difference(Some(&line("12:00:07   71 %  86.1G")), &line("12:00:08   73 %  86.1G"), &mut bytes);
    assert_eq!(String::from_utf8_lossy(&bytes), "\x1b[2;8H8\x1b[4C3");
}
