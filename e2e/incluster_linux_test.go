package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/kates"
)

// podFiles is the environment variable with the files that the kubelet would provide, by name. A
// process that has it is the program in the pod.
const podFiles = "KATES_E2E_POD_FILES"

// serviceAccountFolder is fixed in client-go.
const serviceAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

func init() {
	files := os.Getenv(podFiles)
	if files == "" {
		return
	}
	if err := podMain(files); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// podMain provides the files, and prints the config maps of the pod's namespace: those that a
// client without any configuration sees.
func podMain(files string) error {
	var contents map[string]string
	if err := json.Unmarshal([]byte(files), &contents); err != nil {
		return err
	}
	// In a mount namespace of its own, so that no other process sees it.
	if err := syscall.Mount("none", "/var/run", "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	if kates.InCluster() {
		return errors.New("in a cluster before there are files")
	}
	if err := os.MkdirAll(serviceAccountFolder, 0o700); err != nil {
		return err
	}
	for name, content := range contents {
		if err := os.WriteFile(filepath.Join(serviceAccountFolder, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	if !kates.InCluster() {
		return errors.New("not in a cluster")
	}
	client, err := kates.NewClient(kates.ClientConfig{})
	if err != nil {
		return err
	}
	defer client.Close()
	cm := &corev1.ConfigMap{}
	cm.Name = "mine" // in the pod's namespace
	if err := client.Create(context.Background(), cm, nil); !kates.IsForbidden(err) {
		return fmt.Errorf("the account may only read: %w", err)
	} else if want := contents["says"]; !strings.Contains(err.Error(), want) {
		return fmt.Errorf("%q is not in %w", want, err)
	}
	type snapshot struct{ ConfigMaps []*corev1.ConfigMap }
	snapshots, err := kates.Watch[snapshot](context.Background(), client, kates.Query{Name: "ConfigMaps", Namespace: contents["namespace"]})
	if err != nil {
		return err
	}
	for snap, err := range snapshots.All(context.Background()) {
		if err != nil {
			return err
		}
		for _, cm := range snap.ConfigMaps {
			fmt.Println(cm.Namespace + "/" + cm.Name)
		}
		break
	}
	return nil
}

func TestAPodsClientUsesItsServiceAccountAndNamespace(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	client := newReplica(t, a.ns).client
	require.NoError(t, client.Create(t.Context(), object(configMaps, a.ns, "mine", nil), nil))
	server, err := url.Parse(testCluster.Config.Host)
	require.NoError(t, err)
	host, port, err := net.SplitHostPort(strings.TrimPrefix(testCluster.Config.Host, server.Scheme+"://"))
	require.NoError(t, err)
	files, err := json.Marshal(map[string]string{
		"token": a.token, "ca.crt": string(testCluster.Config.CAData), "namespace": a.ns,
		"says": fmt.Sprintf(`User "system:serviceaccount:%s:reader" cannot create resource "configmaps" in API group "" in the namespace %q`, a.ns, a.ns),
	})
	require.NoError(t, err)
	pod := exec.CommandContext(t.Context(), os.Args[0])
	pod.Env = append(os.Environ(), podFiles+"="+string(files), "KUBECONFIG=", "HOME="+t.TempDir(), "POD_NAMESPACE=",
		"KUBERNETES_SERVICE_HOST="+host, "KUBERNETES_SERVICE_PORT="+port)
	pod.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := pod.CombinedOutput()
	require.NoError(t, err, "it needs user namespaces: %s", out)
	assert.Equal(t, a.ns+"/mine\n", string(out), "what the service account may see, and no more")
}
