//! What the evaluator does in another way than an apiserver, in other words.
//!
//! - A field of an optional value that is not there is an error for it: `a.?b` becomes `a[?'b']`, which is none. So does
//!   `a.?b.c`, of which it knows nothing.
//! - An element for which the condition of `all` or `exists` fails ends these macros for it: the conditions are joined by
//!   functions that go on, and whose last one has the error.

use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};

use super::functions::{ALL, ANY, RESULT};

/// Whether an expression makes an optional value.
pub(super) fn is_optional(expression: &Expr) -> bool {
    let Expr::Call(call) = expression else { return false };
    match call.func_name.as_str() {
        operators::OPT_INDEX => true,
        operators::INDEX => call.args.first().is_some_and(|of| is_optional(&of.expr)),
        "or" => call.target.as_ref().is_some_and(|target| is_optional(&target.expr)),
        _ => false,
    }
}

/// Rewrites an expression and all below.
pub(super) fn rewrite(expression: &mut IdedExpr) {
    match &mut expression.expr {
        Expr::Call(call) => {
            call.target.iter_mut().for_each(|target| rewrite(target));
            call.args.iter_mut().for_each(rewrite);
            if call.func_name == operators::OPT_SELECT {
                operators::OPT_INDEX.clone_into(&mut call.func_name);
            }
        }
        Expr::Select(select) => {
            rewrite(&mut select.operand);
            if is_optional(&select.operand.expr) {
                let field = Expr::Literal(LiteralValue::String(select.field.as_str().into()));
                let field = IdedExpr { id: expression.id, expr: field };
                let of = std::mem::take(&mut *select.operand);
                let (test, id) = (select.test, expression.id);
                let value = call(operators::OPT_INDEX, None, vec![of, field]);
                expression.expr = if test {
                    call("hasValue", Some(IdedExpr { id, expr: value }), Vec::new())
                } else {
                    value
                };
            }
        }
        Expr::Comprehension(macros) => {
            let parts = [&mut macros.iter_range, &mut macros.accu_init, &mut macros.loop_cond];
            parts.into_iter().chain([&mut macros.loop_step, &mut macros.result]).for_each(rewrite);
            let Expr::Call(step) = &mut macros.loop_step.expr else { return };
            let joined = match step.func_name.as_str() {
                operators::LOGICAL_AND => ALL,
                operators::LOGICAL_OR => ANY,
                _ => return,
            };
            joined.clone_into(&mut step.func_name);
            let result = std::mem::take(&mut macros.result);
            macros.result.expr = call(RESULT, None, vec![result]);
        }
        Expr::List(list) => list.elements.iter_mut().for_each(rewrite),
        Expr::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    rewrite(&mut entry.key);
                    rewrite(&mut entry.value);
                }
            }
        }
        Expr::Struct(_) | Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
    }
}

fn call(name: &str, target: Option<IdedExpr>, args: Vec<IdedExpr>) -> Expr {
    Expr::Call(CallExpr { func_name: name.to_owned(), target: target.map(Box::new), args })
}
