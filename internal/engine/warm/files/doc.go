// Package files has the files from which a program's watches start again: what a stream held, and
// up to which version. It reads and writes bytes. It knows nothing of servers and streams, and
// decides nothing about versions: coherence does ("Rules of warm starts").
//
// A stream has two files. The base has all objects; it is written while they change, so it is of
// no moment alone. The changes have the objects that have changed since the base was begun, and
// the version that both together are as of. They are small, and written again and again, until
// they are so many that a new base is cheaper. Changes name their base: with another one they are
// not read.
//
//	magic, head (JSON), its seal
//	chunk: kind, unpacked and packed length, payload (compressed records), its seal
//	…
//	the last chunk, which says that it is the last
//
// A record is an object in wire form, or the key of one that is gone. Chunks are compressed and
// sealed one by one, so they can be read side by side ([Chunk.Each]). A seal is a SHA-256 over the
// head, the chunk's place and its payload: a chunk of another file, or in another place, is as
// wrong as a damaged one. With a key ([Codec].Key) payloads are encrypted, and the seals are those
// of AES-256-GCM, with the same things as associated data. Each member (see [Member]) has a key of
// its own, which is derived (HKDF, RFC 5869) from the given one, and each file another one, derived
// from that and a random salt in the head. So the number of a chunk is its nonce.
//
// A file without a key may be anybody's. What it unpacks to is bounded, by its own size and by
// Codec.Most, and so is all else that takes memory, or is sent to a server.
//
// The head is never encrypted: it has the kind, the selectors and the names of a few objects
// (witnesses), and nothing of their content.
package files
