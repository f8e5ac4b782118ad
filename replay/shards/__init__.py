"""Several Reverb servers behind one learner host, which sees them as one."""
