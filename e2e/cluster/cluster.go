// Package cluster starts the API servers of the end-to-end tests. They are those of package
// apiserver, with clients that package secrecy listens to.
package cluster

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kates-go/kates/e2e/internal/secrecy"
	"github.com/kates-go/kates/kates/katestest/apiserver"
)

type (
	// Cluster is a running control plane.
	Cluster = apiserver.Cluster
	// Server is one API server of a cluster.
	Server = apiserver.Server
	// Backup is a copy of etcd's data at one moment.
	Backup = apiserver.Backup
	// Change is one write to etcd.
	Change = apiserver.Change
)

// Start is [apiserver.Start], with flags of the API server (such as "watch-cache=false").
func Start(ctx context.Context, flags ...string) (*Cluster, error) {
	// Without a logger controller-runtime, which some tests use, prints a complaint with a stack.
	ctrllog.SetLogger(logr.Discard())
	return apiserver.Start(ctx, apiserver.WithFlags(flags...), apiserver.WithTransport(secrecy.Transport))
}

// InstallCRDs is [apiserver.InstallCRDs].
func InstallCRDs(ctx context.Context, config *rest.Config, paths ...string) error {
	return apiserver.InstallCRDs(ctx, config, paths...)
}
