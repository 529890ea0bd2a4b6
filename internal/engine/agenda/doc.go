// Package agenda says which key gets the next turn, and when. It is for a program that has many
// keys, and some workers.
//
// Start at [New], which makes an [Agenda], and at [Entry], which is one key. A caller tells the
// agenda that a key is due ([Agenda.MakeDue], [Agenda.MakeDueOnceQuiet], [Agenda.MakeReady]),
// takes keys for its workers ([Agenda.Next]), and says how each turn has ended ([Agenda.Done],
// [Agenda.Rest]).
//
//	MakeDue, MakeDueOnceQuiet ─▶ waiting ──Release──▶ ready ──Next──▶ running ──Done──▶
//	                                                    ▲                │
//	                                                    │ time           └──Rest──▶ resting
//	                                                    └──────────────────────────────┘
//
// # Which key is next
//
// A key that is due for itself ([Agenda.PutAhead]) goes before those that are due with all keys.
// One turn of five is for the others, so none starves. In each class the keys come in the order in
// which they became ready.
//
// # What it never does
//
// The package knows nothing of what a key stands for, and calls no function of its caller. It has
// no lock: the caller's lock guards an agenda and its entries, but for the channels,
// [Agenda.Waiting] and [Agenda.WakeWorker]. It has no goroutine: two timers keep the time.
package agenda
