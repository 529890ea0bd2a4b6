package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kates-go/kates/kates"
)

// The test of a killed process starts its own program, with these variables in the environment.
const (
	warmKubeconfig = "KATES_WARM_KUBECONFIG"
	warmPlace      = "KATES_WARM_PLACE" // the folder and the namespace
)

// runWarmed is the program: it watches, and keeps what it watches, until it is killed, or its
// parent ends.
func runWarmed(kubeconfig, place string) int {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	if err := watchWarmed(kubeconfig, place); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}

func watchWarmed(kubeconfig, place string) error {
	dir, ns, _ := strings.Cut(place, "|")
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kates.NewClientFromRESTConfig(config, kates.WithLogger(slog.New(slog.DiscardHandler)),
		kates.WithWarmStart(kates.WarmStartDir(dir), kates.WarmStartEvery(200*time.Millisecond)))
	if err != nil {
		return err
	}
	snapshots, err := kates.Watch[warmForms](context.Background(), client, formsIn(ns)...)
	if err != nil {
		return err
	}
	for _, err := range snapshots.All(context.Background()) {
		fmt.Println("a snapshot")
		if err != nil {
			return err
		}
	}
	return nil
}

func TestG1G2AWarmStartAfterAKillListsNothing(t *testing.T) {
	t.Parallel()
	w := newWarmed(t, testCluster.Config, namespace(t))
	w.make(0, 10)
	kubeconfig, err := testCluster.AdminKubeconfig()
	require.NoError(t, err)
	path := t.TempDir() + "/kubeconfig"
	require.NoError(t, os.WriteFile(path, kubeconfig, 0o600))
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), warmKubeconfig+"="+path, warmPlace+"="+w.dir+"|"+w.ns)
	in, err := program.StdinPipe()
	require.NoError(t, err)
	out, err := program.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, program.Start())
	defer func() { _ = in.Close() }()
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Eventually(t, func() bool { // each of the six streams has two files
		all, err := os.ReadDir(w.dir)
		n := 0
		for _, e := range all {
			if strings.HasSuffix(e.Name(), ".kates") {
				n++
			}
		}
		return err == nil && n == 12
	}, patience, 50*time.Millisecond)
	w.change()
	require.NoError(t, program.Process.Kill())
	_ = program.Wait() // it was killed
	lists := w.lists()
	began := w.forms()
	allWarm(t, began)
	assert.Equal(t, lists, w.lists(), "nothing was listed")
}
