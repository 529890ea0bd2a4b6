// Package ordered runs functions side by side, and hands out their results in the order in which
// the functions were given: objects are decoded on the cores that are idle, and taken in one by
// one, as they came.
//
// A [Line] is for one goroutine, which gives the functions and gets the results. A [Pool] has the
// goroutines that help, for all lines of a client:
//
//	the line's goroutine                  the pool
//	Add(f1) Add(f2) Add(f3) …   ───▶   f1 │ f2 │ f3     run side by side
//	out(r1) out(r2) out(r3)     ◀───   the results wait for their turn
//
// The line's goroutine is never idle while there is work of its own: where there is no room for
// another function, and where it waits for the first result, it runs what nobody has begun. So a
// line goes on if all helpers are busy, or if there are none. Without a second core there are
// none, and each function runs at once, in place.
//
// What is held is bounded in bytes, for all lines together. A line that finds no room goes on with
// one function at a time.
//
// The package knows nothing of what the functions do. No lock is held while they run, or while a
// result is handed out.
package ordered
