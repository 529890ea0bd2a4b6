package apiserver

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/transport"

	"github.com/kates-go/kates/kates/katestest/apiserver/internal/binaries"
)

// Option says how a cluster is to be. Options add up: each may be given several times, in any
// order.
type Option func(*settings)

// settings is what all options of a cluster say.
type settings struct {
	versions    []string
	flags       []string
	definitions []string
	wrap        transport.WrapperFunc
}

// Versions returns the versions of Kubernetes that a cluster can be of, such as "1.36", the oldest
// first. The release of each is pinned: [Cluster.Version] says which it is.
func Versions() []string { return binaries.Versions() }

// WithKubernetes has the cluster be of a version of Kubernetes, one of [Versions], whatever
// $KATES_KUBERNETES says. Its kube-apiserver and etcd are built when a machine needs them for the
// first time. Any other version is an error that says which there are, and so are two different
// ones. "" is as if the option was not given.
func WithKubernetes(version string) Option {
	return func(s *settings) {
		if version != "" {
			s.versions = append(s.versions, version)
		}
	}
}

// version is what WithKubernetes says, "" if it says nothing.
func (s settings) version() (string, error) {
	for _, v := range s.versions {
		if v != s.versions[0] {
			return "", fmt.Errorf("a cluster is of one version: WithKubernetes says %s and %s", s.versions[0], v)
		}
	}
	if s.versions == nil {
		return "", nil
	}
	return s.versions[0], nil
}

// WithFlags gives the API server flags, such as "watch-cache=false", in addition to those that it
// needs. A flag takes the place of a flag of that name that the server has by itself here. Of a
// flag that is given several times all values are passed on.
func WithFlags(flags ...string) Option {
	return func(s *settings) { s.flags = append(s.flags, flags...) }
}

// WithCRDs installs the CustomResourceDefinitions in files and folders, as [Cluster.InstallCRDs]
// does. In a test, paths are relative to the folder of its package.
func WithCRDs(paths ...string) Option {
	return func(s *settings) { s.definitions = append(s.definitions, paths...) }
}

// WithTransport wraps the transport of all configurations that the cluster hands out: Config, and
// those of [Cluster.AddUser].
func WithTransport(wrap func(http.RoundTripper) http.RoundTripper) Option {
	return func(s *settings) { s.wrap = transport.Wrappers(s.wrap, wrap) }
}
