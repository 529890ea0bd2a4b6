package fake

// Block holds the lock of a server, as a long list does, until it is called off.
func (s *Server) Block() (unblock func()) {
	s.mu.Lock()
	return s.mu.Unlock
}
