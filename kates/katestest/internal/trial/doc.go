// Package trial runs a program on a server, records what it sends, and judges it: whether it
// settles ([Run.Settle]), and whether it converges after a crash anywhere ([Crashes]). Package
// katestest has the face of it.
//
// Start from [Start]. A [recorder] is the program's transport. It counts the program's calls:
// writes, and reads of single objects. Lists and watches are a reflector's: how many there are
// is no matter of the program's. The recorder also stops the program at one of its writes.
//
// In a bubble of testing/synctest time passes only while nobody can do anything. So a program that
// sends nothing for a while there has nothing to do in that while, however slow the machine is.
// Elsewhere a short while is all that can be waited for.
package trial
