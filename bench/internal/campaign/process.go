package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/kates-go/kates/bench/internal/consumer"
)

// KubeconfigEnv names the file by which a consumer's process finds the server.
const KubeconfigEnv = "BENCH_KUBECONFIG"

// process is a consumer that runs.
type process struct {
	name    string
	command *exec.Cmd
	in      io.WriteCloser
	write   *json.Encoder
	read    *json.Decoder
}

// start starts this program as a consumer. It does nothing yet.
func start(ctx context.Context, v consumer.Variant, kubeconfig string, env ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", v.Name, err)
	}
	c := exec.CommandContext(ctx, self, "consume", v.Name)
	c.Env = append(append(os.Environ(), KubeconfigEnv+"="+kubeconfig), append(v.Env, env...)...)
	c.Stderr = os.Stderr
	c.WaitDelay = 10 * time.Second
	in, err := c.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", v.Name, err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", v.Name, err)
	}
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", v.Name, err)
	}
	return &process{name: v.Name, command: c, in: in, write: json.NewEncoder(in), read: json.NewDecoder(out)}, nil
}

// ask sends a command and waits for its answer.
func (p *process) ask(c consumer.Command) (consumer.Answer, error) {
	if err := p.write.Encode(c); err != nil {
		return consumer.Answer{}, fmt.Errorf("ask %s for %s: %w", p.name, c.Do, err)
	}
	return p.answer()
}

// answer waits for an answer.
func (p *process) answer() (consumer.Answer, error) {
	var a consumer.Answer
	if err := p.read.Decode(&a); err != nil {
		return a, fmt.Errorf("%s ended without an answer: %w", p.name, err)
	}
	if a.Error != "" {
		return a, fmt.Errorf("%s: %s", p.name, a.Error)
	}
	return a, nil
}

// stop ends the process, which ends with its input.
func (p *process) stop() error {
	err := p.in.Close()
	timer := time.AfterFunc(20*time.Second, func() { _ = p.command.Process.Kill() })
	defer timer.Stop()
	if err := errors.Join(err, p.command.Wait()); err != nil {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	return nil
}
