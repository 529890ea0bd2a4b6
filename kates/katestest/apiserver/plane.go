package apiserver

import (
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kates-go/kates/kates/katestest/apiserver/internal/binaries"
)

const loopback = "127.0.0.1"

// newPlane configures the processes; nothing runs yet. Their data is in folders of this package.
// Envtest's own folders would lose certificates and content when a process is stopped to be
// started again.
func newPlane(dir string, set binaries.Set, flags []string) (*envtest.ControlPlane, error) {
	etcdDir, err := subdir(dir, "etcd")
	if err != nil {
		return nil, err
	}
	path, err := watched(dir, set.Etcd, dir)
	if err != nil {
		return nil, err
	}
	etcd := &envtest.Etcd{
		Path:         path,
		DataDir:      etcdDir,
		StartTimeout: startTimeout,
		StopTimeout:  stopTimeout,
		Out:          &tail{},
	}
	etcd.Err = etcd.Out

	server, err := newAPIServer(dir, set.APIServer, flags)
	if err != nil {
		return nil, err
	}
	// KubectlPath is set so that envtest does not search for one. Nothing here runs it.
	return &envtest.ControlPlane{APIServer: server, Etcd: etcd, KubectlPath: "kubectl"}, nil
}

func newAPIServer(dir, program string, flags []string) (*envtest.APIServer, error) {
	certDir, err := subdir(dir, "apiserver")
	if err != nil {
		return nil, err
	}
	path, err := watched(dir, program, dir)
	if err != nil {
		return nil, err
	}
	server := &envtest.APIServer{CertDir: certDir}
	configure(server, path, flags)
	return server, nil
}

// configure sets what all API servers have in common, and the flags of this one.
func configure(server *envtest.APIServer, path string, flags []string) {
	server.Path = path
	server.StartTimeout, server.StopTimeout = startTimeout, stopTimeout
	server.Out = &tail{}
	server.Err = server.Out
	server.SecureServing.Address = loopback
	server.Configure().
		// The default is the address of the host's default route. A machine without a network has
		// none.
		Set("advertise-address", loopback).
		// The server refuses a loopback address as the endpoint of the kubernetes service, again
		// and again. This cluster does not need that endpoint.
		Set("endpoint-reconciler-type", "none")
	setFlags(server.Configure(), flags)
}

// setFlags puts the first value of each flag in the place of what there is, and adds the others.
func setFlags(arguments *envtest.Arguments, flags []string) {
	set := map[string]bool{}
	for _, flag := range flags {
		switch name, value, has := strings.Cut(strings.TrimLeft(flag, "-"), "="); {
		case !has:
			arguments.Enable(name)
		case set[name]:
			arguments.Append(name, value)
		default:
			arguments.Set(name, value)
			set[name] = true
		}
	}
}

// run starts the processes and waits until both are healthy. On an error the caller must stop the
// processes that came up.
func run(plane *envtest.ControlPlane) error {
	if err := runEtcd(plane.Etcd); err != nil {
		return err
	}
	plane.APIServer.EtcdURL = plane.Etcd.URL
	return runServer(plane.APIServer)
}

func runEtcd(etcd *envtest.Etcd) error {
	if err := etcd.Start(); err != nil {
		return fmt.Errorf("start etcd: %w; its last output:\n%s", err, etcd.Out)
	}
	return nil
}

func runServer(server *envtest.APIServer) error {
	if err := server.Start(); err != nil {
		return fmt.Errorf("start kube-apiserver: %w; its last output:\n%s", err, server.Out)
	}
	return nil
}
