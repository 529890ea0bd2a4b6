// Package parts decodes objects of Kubernetes' own types from protobuf, and lets them share what
// they have in common. A part is a list, a map or a pointer of an object: its containers, the
// environment of one of them, its labels, its tolerations. A part whose bytes are those of a part
// that was decoded before is not decoded: the object gets the same memory. So the pods of a
// Deployment have one copy of what their template says, and an event of a pod costs what it
// changes.
//
// A [Table] remembers parts that have come twice, with their bytes. A part is shared only if all
// of its bytes are equal, so no choice of bytes makes one object show parts of another. The table
// has a fixed number of slots, and a bound in bytes: it forgets what has not come for a while, and
// is gone with the stream.
//
// An object that shares parts is for readers alone. What is decoded here is what the generated
// decoder of the type makes of the same bytes. Bytes that no server writes, such as a message that
// is split in two, are left to that decoder.
//
// Unsafe: the decoder writes fields at their offsets, and gives an object the memory of a part. An
// event of a pod takes 22 µs in place of 48. With the build tag kates_safe a table knows no type,
// and all bytes are left to the generated decoders (safe.go).
package parts
