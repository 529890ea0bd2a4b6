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
	"slices"
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

// realFolder is the environment variable of a process in the pod that has no mount namespace of
// its own. It makes the real folder, and removes what it has made.
const realFolder = "KATES_E2E_POD_REAL_FOLDER"

// noPlace is the exit status of a process that cannot provide the files.
const noPlace = 3

// errNoPlace is the error of that.
var errNoPlace = errors.New("no place for the files of a pod")

// serviceAccountFolder is fixed in client-go.
const serviceAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

func init() {
	files := os.Getenv(podFiles)
	if files == "" {
		return
	}
	if err := podMain(files); err != nil {
		fmt.Fprintln(os.Stderr, err)
		if errors.Is(err, errNoPlace) {
			os.Exit(noPlace)
		}
		os.Exit(1)
	}
	os.Exit(0)
}

// podMain provides the files, and prints the config maps of the pod's namespace: those that a
// client without any configuration sees.
func podMain(files string) (err error) {
	var contents map[string]string
	if err := json.Unmarshal([]byte(files), &contents); err != nil {
		return err
	}
	if os.Getenv(realFolder) == "" {
		// In a mount namespace of its own, so that no other process sees it.
		if err := syscall.Mount("none", "/var/run", "tmpfs", 0, ""); err != nil {
			return fmt.Errorf("%w: mount: %w", errNoPlace, err)
		}
	}
	if kates.InCluster() {
		return errors.New("in a cluster before there are files")
	}
	var made []string // in this order
	defer func() {
		for _, path := range slices.Backward(made) {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	if err := makeFolder(serviceAccountFolder, &made); err != nil {
		return fmt.Errorf("%w: %w", errNoPlace, err)
	}
	for name, content := range contents {
		path := filepath.Join(serviceAccountFolder, name)
		made = append(made, path)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
	}
	return inPod(contents)
}

// makeFolder makes a folder that does not exist, and those above that do not exist either.
func makeFolder(path string, made *[]string) error {
	if above := filepath.Dir(path); above != path {
		if _, err := os.Stat(above); errors.Is(err, os.ErrNotExist) {
			if err := makeFolder(above, made); err != nil {
				return err
			}
		}
	}
	err := os.Mkdir(path, 0o700)
	if err == nil {
		*made = append(*made, path)
	}
	return err
}

// inPod is the program in the pod.
func inPod(contents map[string]string) error {
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
	env := append(os.Environ(), podFiles+"="+string(files), "KUBECONFIG=", "HOME="+t.TempDir(), "POD_NAMESPACE=",
		"KUBERNETES_SERVICE_HOST="+host, "KUBERNETES_SERVICE_PORT="+port)
	pod := exec.CommandContext(t.Context(), os.Args[0])
	pod.Env = append(env, realFolder+"=")
	pod.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := pod.CombinedOutput()
	if err != nil && (pod.Process == nil || pod.ProcessState.ExitCode() == noPlace) { // many containers forbid it
		t.Logf("no user namespace: %v %s", err, out)
		pod = exec.CommandContext(t.Context(), os.Args[0])
		pod.Env = append(env, realFolder+"=yes")
		out, err = pod.CombinedOutput()
	}
	require.NoError(t, err, "it needs user namespaces, or the right to make %s, which must not exist: %s",
		serviceAccountFolder, out)
	assert.Equal(t, a.ns+"/mine\n", string(out), "what the service account may see, and no more")
}
