// Package fake stands between kates and client-go's bare fake dynamic client, which maintains
// neither UIDs nor resource versions, and selects nothing in its watches. A [Server] gives what the
// fake has both, so that everything above knows one kind of server: lists at a version, events in
// the order of versions, bookmarks, and own writes that are known by their version.
//
//	the fake ── a list ───────────▶ items  ─┐
//	         ── a watch each ─────▶ events ─┼─▶ mirror: key → states ──▶ watches above, lists
//	         ── the answer to a write ──────┘
//
// # States
//
// A mirror holds for each object the states that it has had: a content, or that it is gone. Each
// state has a version, one growing sequence for the whole fake. Each life of an object has a UID.
// What the fake says of an object is compared with the states that it may repeat, by content:
//
//   - A watch brings the states in their order. It may repeat the last one that it has brought,
//     and those after that.
//   - A list, or an answer, may repeat the state at the moment of the request, and those after.
//
// What repeats no state is a new one, with the next version: another program has written, or this
// client has and its event is still to come. So two watches that bring one event bring one state,
// and a write without an effect makes none, as on a real server.
//
// The tracker of the fake puts an event into the buffers of its watches before it answers the
// write. So after an answer the watches are emptied, and the write is the state with the content of
// the answer. If there is none, a reactor has answered: the fake's word counts, and is a new state.
// If no event has shown that for as long as [hold] says, the tracker is asked, and what it has
// counts: so an answer that is stored nowhere does not count for ever. A watch does that, or an
// attempt to open one.
// A watch that a reactor has made may bring the event later. What it brings before that is older
// than the write, and waits for its event, for as long as [hold] says.
//
// # Stamps
//
// An object goes up with its UID and version as an [object.Stamped]: a stamp beside it, not in it.
// So no stamp reaches the fake, and a user sees an object as the fake has it, with the UID and the
// version of its fixture if that has set them.
//
// # What the fake sees
//
// Each list and each watch of a stream is one of the fake, with the same namespace and options. So
// reactors, the errors that they inject, and the recorded actions are as they would be without this
// package. A delete between a list and its watch, which the fake tells nobody, is found by a look
// at its tracker, which is no action.
package fake
