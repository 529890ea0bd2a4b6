package apiserver

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Server is one API server of a cluster. [Start] and [Cluster.AddServer] make it. Only one
// goroutine at a time may use its methods.
type Server struct {
	plane   *envtest.ControlPlane
	process *envtest.APIServer
	up      bool
}

// Server returns the API server that came with the cluster, the one of Config.
func (c *Cluster) Server() *Server { return c.servers[0] }

// AddServer runs one more API server on the cluster's etcd, with flags (such as
// "watch-cache=false") in addition to the ones that all have. It returns when the server is
// healthy. The server has the certificates of the first one, so that Config works for it with
// another Host. It is stopped with the cluster.
func (c *Cluster) AddServer(flags ...string) (*Server, error) {
	first := c.plane.APIServer
	dir, err := subdir(c.dir, fmt.Sprintf("apiserver-%d", len(c.servers)+1))
	if err != nil {
		return nil, fmt.Errorf("add an API server: %w", err)
	}
	path, err := watched(dir, c.program, c.dir)
	if err != nil {
		return nil, fmt.Errorf("add an API server: %w", err)
	}
	process := &envtest.APIServer{CertDir: first.CertDir, EtcdURL: c.plane.Etcd.URL}
	process.SecureServing.CA, process.SecureServing.Authn = first.SecureServing.CA, first.SecureServing.Authn
	configure(process, path, flags)
	s := &Server{plane: c.plane, process: process}
	c.servers = append(c.servers, s)
	return s, s.Start()
}

// Address returns where the server listens, as host:port. It stays the same after a restart.
func (s *Server) Address() string {
	return net.JoinHostPort(s.process.SecureServing.Address, s.process.SecureServing.Port)
}

// Kill ends the server as a crash does (SIGKILL), and waits until it is gone. If the server does
// not run, Kill does nothing.
func (s *Server) Kill() error {
	if !s.up {
		return nil
	}
	if err := signal(s.process.Path, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill the API server: %w", err)
	}
	return s.Stop()
}

// Stop ends the server gracefully (SIGTERM), and waits until it is gone. If the server does not
// run, Stop does nothing.
func (s *Server) Stop() error {
	if !s.up {
		return nil
	}
	if err := gone(s.process.Stop); err != nil {
		return fmt.Errorf("stop the API server: %w", err)
	}
	s.up = false
	return nil
}

// Start starts a server again that was killed or stopped, at the same address, and returns when
// it is healthy.
func (s *Server) Start() error {
	if s.up {
		return nil
	}
	s.up = true // the cluster must stop it even if it does not get healthy
	return runServer(s.process)
}

// Pause stops the server (SIGSTOP) until Resume: it answers nothing, and its view of etcd gets
// old. A paused server cannot be stopped.
func (s *Server) Pause() error { return s.signal("pause", syscall.SIGSTOP) }

// Resume ends Pause. At first the server acts on its old view.
func (s *Server) Resume() error { return s.signal("resume", syscall.SIGCONT) }

func (s *Server) signal(verb string, what syscall.Signal) error {
	err := errors.New("it does not run")
	if s.up {
		err = signal(s.process.Path, what)
	}
	if err != nil {
		return fmt.Errorf("%s the API server: %w", verb, err)
	}
	return nil
}

// gone calls stop until the process has ended for certain: a call fails if the process has just
// ended.
func gone(stop func() error) error {
	deadline := time.Now().Add(stopTimeout)
	for {
		err := stop()
		if !errors.Is(err, syscall.ESRCH) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// signal sends a signal to the program that one of the scripts runs.
func signal(path string, what syscall.Signal) error {
	pid, err := running(path)
	if err != nil {
		return fmt.Errorf("find the process of %s: %w", filepath.Base(path), err)
	}
	return syscall.Kill(pid, what)
}
