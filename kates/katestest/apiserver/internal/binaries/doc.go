// Package binaries provides kube-apiserver and etcd of several versions of Kubernetes, built from the
// sources that the texts in the folder pins name.
//
// [Ensure] is the entry point. It returns the cached binaries, and builds them first if they
// are missing. The name of a cache entry covers everything that goes into it. So another version
// or Go toolchain makes a new entry, and nothing is ever rebuilt in place. The package knows
// nothing of how the binaries are run.
package binaries
