//! What could be done: the findings, those of the selected process first.

use ratatui::layout::Rect;

use super::Scene;
use crate::analyze::Freshness;
use crate::rules::{Finding, Fix, Provenance, Saving};
use crate::ui::app::{Drawn, Hit};
use crate::ui::doc::Doc;
use crate::ui::paint::Canvas;
use crate::units::Bytes;

/// Columns of a rule's name.
const RULE: u16 = 15;

/// The findings in the order in which they are shown: of the selected process, then the others.
fn ordered<'a>(scene: &Scene<'a>) -> Vec<(usize, &'a Finding)> {
    let pid = scene.holder().map(|holder| holder.pid);
    let mut all: Vec<(usize, &Finding)> =
        scene.app.findings(scene.context).into_iter().enumerate().collect();
    all.sort_by_key(|(_, finding)| pid.is_none() || finding.pid != pid);
    all
}

/// Rows that the pane would like to have.
pub fn wish(scene: &Scene<'_>) -> u16 {
    let lines: usize = scene
        .app
        .findings(scene.context)
        .iter()
        .map(|finding| 1 + usize::from(!finding.fixes.is_empty()))
        .sum();
    1 + u16::try_from(lines).unwrap_or(u16::MAX - 1)
}

/// Draws the pane at the bottom of the main page.
pub fn draw(canvas: &mut Canvas<'_>, scene: &Scene<'_>, drawn: &mut Drawn) {
    let theme = canvas.look.theme;
    let x = title(canvas, scene);
    let findings = ordered(scene);
    if findings.is_empty() {
        canvas.put(x, 0, nothing(scene), theme.dim);
        return;
    }
    let about = scene.holder().filter(|holder| findings[0].1.pid == Some(holder.pid));
    if let Some(holder) = about {
        let end = canvas.width().saturating_sub(1);
        let x = canvas.put(x, 0, "for ", theme.dim);
        let x = canvas.put(x, 0, &format!("{} ", holder.pid), theme.text);
        canvas.put_foreign(x, 0, &holder.command(), theme.text, end.saturating_sub(x));
    }
    let (mut y, height, area) = (1, canvas.height(), canvas.area());
    let mut hidden = findings.len();
    for (n, finding) in findings {
        if y >= height {
            break;
        }
        let start = y;
        y = one(canvas, finding, y);
        hidden -= 1;
        let strip = Rect { y: area.y + start, height: y - start, ..area };
        drawn.hits.push((strip.intersection(area), Hit::Finding(n)));
    }
    if hidden > 0 {
        let end = canvas.width().saturating_sub(1);
        let key = scene.app.settings.keys.label(crate::ui::action::Action::Fixes, true);
        canvas.put_right(end, 0, &format!("  {hidden} more: {key}"), theme.dim);
    }
}

/// `FIXES  12.0 GiB on GPU 0: fits after 2 fixes  2 hidden`; gives the column behind it.
fn title(canvas: &mut Canvas<'_>, scene: &Scene<'_>) -> u16 {
    let theme = canvas.look.theme;
    let mut x = canvas.put(1, 0, "FIXES", theme.dim) + 2;
    if let Some(fit) = &scene.app.fit {
        let style = if fit.missing == Bytes::ZERO { theme.good } else { theme.warn };
        let whose = if scene.app.wanted_by_error { "the error's " } else { "" };
        let words = format!("{whose}{} on GPU {}: {}", fit.need, fit.label, fit.words());
        x = canvas.put_within(x, 0, &words, style, canvas.width().saturating_sub(1)) + 2;
    }
    for (count, words, style) in [
        (scene.app.findings_elsewhere(scene.context), "on other GPUs", theme.dim),
        (scene.app.hidden_findings(scene.context), "hidden", theme.warn),
    ] {
        if count > 0 {
            x = canvas.put(x, 0, &format!("{count} {words}"), style) + 2;
        }
    }
    x
}

/// What stands where there is no fix to show.
fn nothing(scene: &Scene<'_>) -> &'static str {
    let view = scene.context.view;
    let hides = scene.app.hidden_findings(scene.context) > 0
        || scene.app.findings_elsewhere(scene.context) > 0;
    // What was not looked at is not well.
    let looked = view.procs_age_ms.is_some();
    let unlisted = view.gpus.iter().any(|gpu| gpu.sample.is_partly_listed());
    match &view.freshness {
        _ if hides => "nothing else to mend",
        Freshness::Past if !looked => "not kept for this earlier moment",
        _ if !looked => "not known yet",
        _ if unlisted => "nothing to mend, as far as can be seen",
        _ => "nothing to mend",
    }
}

fn one(canvas: &mut Canvas<'_>, finding: &Finding, y: u16) -> u16 {
    let theme = canvas.look.theme;
    let end = canvas.width().saturating_sub(1);
    let style = theme.severity(finding.severity);
    number(canvas, finding, y);
    canvas.put_foreign(4, y, finding.rule, style, RULE - 1);
    let fix = finding.fixes.first();
    let basis = fix.and_then(|fix| fix.saves).map(|saving| basis(saving.provenance));
    let mut right = end;
    if let Some(basis) = basis.filter(|_| end > 60) {
        right = canvas.put_right(end, y, basis, theme.dim).saturating_sub(1);
    }
    let x = 4 + RULE;
    canvas.put_foreign(x, y, &finding.headline, theme.text, right.saturating_sub(x));
    match fix {
        Some(fix) => fix_line(canvas, fix, y + 1),
        None => y + 1,
    }
}

fn number(canvas: &mut Canvas<'_>, finding: &Finding, y: u16) {
    let theme = canvas.look.theme;
    if finding.fix_number == 0 {
        canvas.put(1, y, canvas.look.glyphs.alert, theme.severity(finding.severity));
    } else {
        canvas.put(1, y, &finding.fix_number.to_string(), theme.strong);
    }
}

fn fix_line(canvas: &mut Canvas<'_>, fix: &Fix, y: u16) -> u16 {
    let theme = canvas.look.theme;
    let end = canvas.width().saturating_sub(1);
    let mut right = end;
    if let Some(saving) = fix.saves.filter(|_| end > 60) {
        right = canvas.put_right(end, y, &frees(saving), theme.text).saturating_sub(2);
    }
    let x = canvas.put(4, y, canvas.look.glyphs.prompt, theme.dim) + 1;
    let room = right.saturating_sub(x);
    match &fix.line {
        Some(line) => canvas.put_foreign(x, y, line, theme.strong, room),
        None => canvas.put_foreign(x, y, &fix.title, theme.text, room),
    };
    y + 1
}

/// `frees about 21 GiB`, `frees 22.1 GiB`.
fn frees(saving: Saving) -> String {
    match saving.provenance {
        Provenance::Measured => format!("frees {}", saving.bytes),
        _ if saving.low == saving.high => format!("frees about {}", round(saving.bytes)),
        _ => format!("frees {} to {}", round(saving.low), round(saving.high)),
    }
}

/// An estimate has no tenths.
fn round(bytes: Bytes) -> String {
    if bytes >= Bytes::gib(10) { format!("{:.0} GiB", bytes.as_gib()) } else { bytes.to_string() }
}

const fn basis(provenance: Provenance) -> &'static str {
    match provenance {
        Provenance::Measured => "measured",
        Provenance::Read => "read",
        Provenance::Reported => "reported",
        Provenance::Estimated => "estimated",
    }
}

/// Draws the page of all fixes: a list, and the selected one in full below.
pub fn page(canvas: &mut Canvas<'_>, scene: &Scene<'_>, drawn: &mut Drawn) {
    let theme = canvas.look.theme;
    let findings = scene.app.findings(scene.context);
    let x = title(canvas, scene);
    if findings.is_empty() {
        canvas.put(x, 0, nothing(scene), theme.dim);
        return;
    }
    let at = scene.app.finding.min(findings.len() - 1);
    let rows = usize::from(canvas.height() / 3).clamp(1, findings.len());
    let first = (at + 1).saturating_sub(rows);
    let area = canvas.area();
    for (n, finding) in findings.iter().enumerate().skip(first).take(rows) {
        let y = 1 + (n - first) as u16;
        number(canvas, finding, y);
        canvas.put_foreign(4, y, finding.rule, theme.severity(finding.severity), RULE - 1);
        let x = 4 + RULE;
        let room = canvas.width().saturating_sub(x + 1);
        canvas.put_foreign(x, y, &finding.headline, theme.text, room);
        if n == at {
            canvas.put(0, y, canvas.look.glyphs.select, theme.accent);
            canvas.tint(y, theme.selected);
        }
        drawn.hits.push((Rect { y: area.y + y, height: 1, ..area }, Hit::Finding(n)));
    }
    let top = rows as u16 + 1;
    canvas.rule(top);
    let part = Rect {
        x: area.x + 1,
        y: area.y + top + 1,
        width: area.width.saturating_sub(2),
        height: area.height.saturating_sub(top + 1),
    };
    let mut doc = Doc::new(part.width, canvas.look);
    whole(&mut doc, findings[at]);
    doc.draw(&mut canvas.part(part), scene.app.scroll);
}

/// One finding with everything that is known of it.
pub fn whole(doc: &mut Doc, finding: &Finding) {
    let look = *doc.look();
    let (theme, glyphs) = (look.theme, look.glyphs);
    doc.line(&finding.headline, theme.strong);
    for evidence in &finding.evidence {
        doc.bullet(glyphs.dot, theme.dim, evidence, theme.text);
    }
    for fix in &finding.fixes {
        doc.space();
        doc.line(&fix.title, theme.text);
        if let Some(line) = &fix.line {
            doc.bullet(glyphs.prompt, theme.dim, line, theme.strong);
        }
        if let Some(saving) = fix.saves {
            let basis = basis(saving.provenance);
            let range = format!("{} ({} to {}, {basis})", saving.bytes, saving.low, saving.high);
            let exact = format!("{} ({basis})", saving.bytes);
            doc.fact("frees", if saving.low == saving.high { &exact } else { &range });
        }
        if !fix.cost.is_empty() {
            doc.fact("costs", &fix.cost);
        }
    }
}
