//! Moving events: writer, socket, commands.
