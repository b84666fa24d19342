"""What a stop and restore of asynchronous RL training threw away, from its rollout trace."""
