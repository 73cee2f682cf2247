//! As much of JSON Schema as the file uses, and stricter: a key that the file does not describe is
//! a fault too.

use serde_json::Value;

/// Panics at the first difference and says where it is.
pub fn check(schema: &Value, value: &Value) {
    if let Err(fault) = fits(schema, schema, value, "$") {
        panic!("{fault}");
    }
}

fn fits(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    if let Some(name) = schema["$ref"].as_str() {
        let target = name.strip_prefix('#').and_then(|path| root.pointer(path));
        return fits(root, target.ok_or(format!("no {name}"))?, value, at);
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let faults: Vec<String> =
            choices.iter().filter_map(|choice| fits(root, choice, value, at).err()).collect();
        return if faults.len() < choices.len() { Ok(()) } else { Err(faults.join(" and ")) };
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        return Err(format!("{at}: {value} is none of {allowed:?}"));
    }
    if let Some(only) = schema.get("const")
        && only != value
    {
        return Err(format!("{at}: {value} is not {only}"));
    }
    match schema["type"].as_str() {
        Some("object") => object(root, schema, value, at),
        Some("array") => {
            let items = value.as_array().ok_or(format!("{at}: {value} is no array"))?;
            let each = |(n, item): (usize, &Value)| {
                fits(root, &schema["items"], item, &format!("{at}[{n}]"))
            };
            items.iter().enumerate().try_for_each(each)
        }
        Some("string") if !value.is_string() => Err(format!("{at}: {value} is no string")),
        Some("integer") if !(value.is_u64() || value.is_i64()) => {
            Err(format!("{at}: {value} is no integer"))
        }
        Some("number") if !value.is_number() => Err(format!("{at}: {value} is no number")),
        Some("boolean") if !value.is_boolean() => Err(format!("{at}: {value} is no boolean")),
        Some("null") if !value.is_null() => Err(format!("{at}: {value} is not null")),
        Some("string" | "integer" | "number" | "boolean" | "null") => Ok(()),
        None if schema.get("enum").or(schema.get("const")).is_some() => Ok(()),
        other => Err(format!("{at}: the schema has the type {other:?}")),
    }
}

fn object(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let found = value.as_object().ok_or(format!("{at}: {value} is no object"))?;
    let described = schema["properties"].as_object().ok_or(format!("{at}: no properties"))?;
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !found.contains_key(name) {
            return Err(format!("{at}.{name} is missing"));
        }
    }
    for (name, inner) in found {
        let schema = described.get(name).ok_or(format!("{at}.{name} is not described"))?;
        fits(root, schema, inner, &format!("{at}.{name}"))?;
    }
    Ok(())
}
