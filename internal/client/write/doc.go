// Package write sends the writes of a client, and makes each an own write of its streams.
//
// In come the value of a caller, the [Options] of the write, and for some a function that changes
// an object. Out come the server's answer, in the caller's target, and an error that says what was
// done to which object. [Writer.Do] is the way of every request:
//
//	fence ─▶ preconditions ─▶ stream.Begin ─▶ request ─▶ the answer is read ─▶ Commit, or Abandon
//
// What an answer tells (the object is there, it is leaving, it is gone) is read in one place. What
// a fake lacks is made up for here, too: versions, and a status that is a part of its own.
//
// The package never holds a lock while it sends or calls a function, never modifies what it is
// given, and never sends a write again whose outcome is unknown. It knows no queries.
package write

import (
	"github.com/kates-go/kates/internal/client/core"
)

// Writer writes for a client.
type Writer struct{ *core.Core }
