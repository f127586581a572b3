//! Functions of Kubernetes' CEL library that the language's own extensions lack: `sum`, `min`, `max`, `isSorted` and
//! `indexOf` of lists, `find` of a regular expression in a string.

use std::cmp::Ordering;

use cel::common::types::{INT_TYPE, LIST_TYPE, STRING_TYPE};
use cel::common::value::CowVal;
use cel::{DeclarationError, Env, ExecutionError, Value};
use regex::Regex;

type Outcome = Result<Value, ExecutionError>;

/// Adds the functions to an environment.
pub(super) fn add(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_member_overload("sum", "list_sum", LIST_TYPE, vec![], |args| {
        answer(sum(&items(&args)?))
    })?;
    env.add_member_overload("min", "list_min", LIST_TYPE, vec![], |args| {
        answer(extreme(&items(&args)?, Ordering::Less))
    })?;
    env.add_member_overload("max", "list_max", LIST_TYPE, vec![], |args| {
        answer(extreme(&items(&args)?, Ordering::Greater))
    })?;
    env.add_member_overload("isSorted", "list_is_sorted", LIST_TYPE, vec![], |args| {
        answer(Ok(items(&args)?.is_sorted().into()))
    })?;
    for (id, item) in [
        ("list_index_of_int", INT_TYPE),
        ("list_index_of_string", STRING_TYPE),
    ] {
        env.add_member_overload("indexOf", id, LIST_TYPE, vec![item], |args| {
            answer(index_of(&args))
        })?;
    }
    env.add_member_overload(
        "find",
        "string_find",
        STRING_TYPE,
        vec![STRING_TYPE],
        |args| answer(find(&args)),
    )
}

fn answer<'b, 'v>(outcome: Outcome) -> Result<CowVal<'b, 'v>, ExecutionError> {
    Ok(CowVal::Owned(outcome?.try_into()?))
}

fn argument(args: &[CowVal<'_, '_>], index: usize) -> Outcome {
    args.get(index)
        .ok_or(ExecutionError::MissingArgumentOrTarget)?
        .as_ref()
        .try_into()
}

fn items(args: &[CowVal<'_, '_>]) -> Result<Vec<Value>, ExecutionError> {
    match argument(args, 0)? {
        Value::List(items) => Ok(items.to_vec()),
        other => Err(ExecutionError::unsupported_target_type(other)),
    }
}

fn sum(items: &[Value]) -> Outcome {
    let mut total: Option<Value> = None;
    for item in items {
        total = Some(match (total, item) {
            (None, item) => item.clone(),
            (Some(Value::Int(left)), Value::Int(right)) => left
                .checked_add(*right)
                .ok_or_else(|| ExecutionError::function_error("sum", "integer overflow"))?
                .into(),
            (Some(Value::Float(left)), Value::Float(right)) => (left + right).into(),
            (Some(_), other) => return Err(ExecutionError::unsupported_target_type(other.clone())),
        });
    }
    Ok(total.unwrap_or(Value::Int(0)))
}

fn extreme(items: &[Value], wanted: Ordering) -> Outcome {
    let mut best: Option<&Value> = None;
    for item in items {
        if best.is_none_or(|best| item.partial_cmp(best) == Some(wanted)) {
            best = Some(item);
        }
    }
    let name = if wanted == Ordering::Less {
        "min"
    } else {
        "max"
    };
    best.cloned()
        .ok_or_else(|| ExecutionError::function_error(name, format!("{name} called on empty list")))
}

fn index_of(args: &[CowVal<'_, '_>]) -> Outcome {
    let wanted = argument(args, 1)?;
    let position = items(args)?.iter().position(|item| *item == wanted);
    Ok(position
        .and_then(|position| i64::try_from(position).ok())
        .unwrap_or(-1)
        .into())
}

fn find(args: &[CowVal<'_, '_>]) -> Outcome {
    let (Value::String(text), Value::String(pattern)) = (argument(args, 0)?, argument(args, 1)?)
    else {
        return Err(ExecutionError::MissingArgumentOrTarget);
    };
    let regex =
        Regex::new(&pattern).map_err(|error| ExecutionError::function_error("find", error))?;
    Ok(regex.find(&text).map_or("", |found| found.as_str()).into())
}
