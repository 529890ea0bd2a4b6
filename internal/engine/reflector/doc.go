// Package reflector keeps a [Sink] as new as the server. It stands in place of client-go's
// Reflector. A [Reflector] lists, then watches from the list's version on for as long as the
// server can resume, and lists again where it cannot. What follows a request runs in one goroutine,
// so that events come in one order.
//
// # States
//
//	            ┌──────────── the next watch ◀─── pause, probe ◀──┐
//	            ▼                                                  │
//	list ──▶ watching ──▶ the watch ended: a result ──▶ the table of results
//	  ▲                                                            │
//	  └──────── pause ◀──── only a list helps ◀────────────────────┘
//
// How a watch has ended is one value of type result. One table says what follows (result.go):
//
//	result    next watch after         a list instead
//	inTime    nothing
//	early     a probe                  if the probe finds a server that was restored
//	silent    a probe                  the same, or if own writes wait for the watch
//	failed    a probe                  the same
//	garbled   a probe                  the same, or after some of them in a row
//	moved     a probe, unless one      the same
//	          was handed over
//	expired                            always
//	full                               always
//
// A refusal to open the next watch (410, 403, 400, a kind that is served elsewhere) leads to a
// list, too.
//
// A watch that brought nothing new, and failed or did not last, is followed by a pause. The pauses
// grow, are random by half, and are as long as the server advises.
//
// # Rules
//
// Each list asks for the newest state (no resource version), so that no list is older than what
// was shown or written: rule 3 of package coherence. A probe asks for the server's newest version
// after each watch that ended before its time. If that version is older than one that the sink has
// had, the server may have been restored: rule 8. The list after it begins a new history.
//
// The package knows no store and no reader. The sink judges what comes.
package reflector
