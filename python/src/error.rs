//! Errors as Python's exceptions.
use pyo3::PyTypeInfo as _;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// The library's text as an exception: `lacuna.InputError`, which is a `ValueError`, where other arguments would do, else
/// `lacuna.Error`.
pub(crate) fn raise(error: &lacuna::Error) -> PyErr {
    message(error.is_usage(), error.to_string())
}

/// An `InputError` of the module's own.
pub(crate) fn input(text: impl Into<String>) -> PyErr {
    message(true, text.into())
}

fn message(is_usage: bool, text: String) -> PyErr {
    Python::attach(|py| {
        let name = if is_usage { "InputError" } else { "Error" };
        let class = py.import("lacuna._errors").and_then(|errors| errors.getattr(name));
        match class.and_then(|class| Ok(class.cast_into::<pyo3::types::PyType>()?)) {
            Ok(class) => PyErr::from_type(class, text),
            Err(_) => PyErr::from_type(PyRuntimeError::type_object(py), text),
        }
    })
}
