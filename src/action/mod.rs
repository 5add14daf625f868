//! The UI-TARS action grammar: text to actions and back.
