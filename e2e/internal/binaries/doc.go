// Package binaries provides the kube-apiserver and etcd that the end-to-end
// tests run, built from the sources that e2e/apiserver/go.mod pins.
//
// [Ensure] is the one entry: it returns the cached binaries, and builds them
// first where they are missing. A cache entry is named after everything that
// goes into it, so changing a version or the Go toolchain makes a new one and
// nothing is ever rebuilt in place. The package knows nothing of how the
// binaries are run.
package binaries
