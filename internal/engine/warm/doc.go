// Package warm begins a stream with what it held when the program ran before, and keeps what it
// holds for the next time. A warm start is a first list that comes from a file, and from a watch
// that goes on where the file ends. The rules that make it one are in package coherence (W1 to
// W4). Whatever is wrong with a file, or may be, is a reason for a plain first list, and nothing
// else: it is in the status, and logged once.
//
//	file ───────────▶ list ◀─── events of a short watch from the file's version
//	server: witnesses, newest version ──▶ is it the same history? has the watch reached it?
//
// Not every stream is kept. A transform is a function, and nobody can tell whether that of the
// next process does the same. The versions of a [source.Clock] end with its process. Secrets are
// kept only where files are encrypted. A stream with an object that does not decode is not kept
// while it is there: the file would not have it in wire form.
//
// A [Keeper] belongs to one stream, a [Saver] to all streams of a client. The package knows nothing
// of stores and readers. Package files has what is in a file.
package warm
