// Package secrecy finds out whether a run of tests says a secret: in a log, an error, a status, an
// event, or the text of a panic.
//
// [Main] is the body of a TestMain. Another process, the listener, copies standard output and
// standard error of the run, so that it has the text of a panic, too. When the run has ended, the
// listener looks for all secrets of the run in all that was said, and a finding fails the run.
//
// Secrets are learned from requests ([Transport]): what is written to Secrets, tokens that are
// issued, and tokens that are used. [Learn] is for those that no request shows. [Say] and [Writer]
// are for texts that are not printed.
//
// A text that is short, such as "yes", cannot be recognised. A Secret that has one fails the run:
// its data are to be made by [Mark].
package secrecy
